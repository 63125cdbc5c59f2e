//! Probe `fork`: a copy of a process, which ends at once.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Parameter, Placement, Probe, Row};
use crate::small::{Work, making_children};

const HUNDRED_MEGABYTES: u64 = 100 << 20;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "fork",
    class: Class::Process,
    words: "fork of a small static process, _exit of the child, waitpid",
    metric: Metric::Latency,
    placements: &[Placement::None, Placement::SameCpu],
    size: Some(Parameter {
        words: "bytes of memory that the process holds, in pages of the smallest kind",
        default: 0,
        least: 0,
        most: 1 << 40,
    }),
    count: None,
    needs: "memory files that can be executed",
    rows: &[
        Row::plain("fork"),
        Row::plain("fork_100mb").of_size(HUNDRED_MEGABYTES),
    ],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    making_children(asked, Work::End(asked.size))
}
