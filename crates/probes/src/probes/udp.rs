//! Probe `udp`: round trips of one byte through UDP on the loopback interface.

use crate::channel::udp_sockets;
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "udp",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through UDP on the loopback",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "a loopback interface",
    rows: &[
        Row::plain("udp_same_cpu").at(Placement::SameCpu),
        Row::plain("udp_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, udp_sockets),
};
