//! Probe `tcp_bandwidth`: bytes a second from another process through TCP on the loopback.

use crate::channel::tcp_streams;
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::PLACEMENTS;
use crate::transfer;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "tcp_bandwidth",
    class: Class::Ipc,
    words: "bytes from another process through TCP on the loopback, 64 KiB at a time",
    metric: Metric::Bandwidth,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "a loopback interface",
    rows: &[
        Row::plain("tcp_bandwidth_same_cpu").at(Placement::SameCpu),
        Row::plain("tcp_bandwidth_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| transfer::open(asked, tcp_streams),
};
