//! Probe `unix`: round trips of one byte through a pair of `AF_UNIX` stream sockets.

use crate::channel::unix_streams;
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "unix",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through AF_UNIX streams",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "",
    rows: &[
        Row::plain("unix_same_cpu").at(Placement::SameCpu),
        Row::plain("unix_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, unix_streams),
};
