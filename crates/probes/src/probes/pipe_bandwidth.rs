//! Probe `pipe_bandwidth`: bytes a second from another process through a pipe.

use crate::channel::pipes;
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::PLACEMENTS;
use crate::transfer;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "pipe_bandwidth",
    class: Class::Ipc,
    words: "bytes from another process through a pipe, 64 KiB at a time",
    metric: Metric::Bandwidth,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "",
    rows: &[
        Row::plain("pipe_bandwidth_same_cpu").at(Placement::SameCpu),
        Row::plain("pipe_bandwidth_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| transfer::open(asked, pipes),
};
