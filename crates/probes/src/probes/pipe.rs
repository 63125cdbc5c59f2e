//! Probe `pipe`: round trips of one byte through a pair of pipes.

use crate::channel::pipes;
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "pipe",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through two pipes",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "",
    rows: &[
        Row::plain("pipe_same_cpu").at(Placement::SameCpu),
        Row::plain("pipe_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, pipes),
};
