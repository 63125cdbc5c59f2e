//! Probe `tcp`: round trips of one byte through TCP on the loopback interface.

use crate::channel::tcp_streams;
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "tcp",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through TCP on the loopback",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "a loopback interface",
    rows: &[
        Row::plain("tcp_same_cpu").at(Placement::SameCpu),
        Row::plain("tcp_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, tcp_streams),
};
