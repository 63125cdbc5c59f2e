//! Probe `unix_bandwidth`: bytes a second from another process through an `AF_UNIX` stream.

use crate::channel::unix_streams;
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::PLACEMENTS;
use crate::transfer;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "unix_bandwidth",
    class: Class::Ipc,
    words: "bytes from another process through an AF_UNIX stream, 64 KiB at a time",
    metric: Metric::Bandwidth,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "",
    rows: &[
        Row::plain("unix_bandwidth_same_cpu").at(Placement::SameCpu),
        Row::plain("unix_bandwidth_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| transfer::open(asked, unix_streams),
};
