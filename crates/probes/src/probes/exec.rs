//! Probe `exec`: a new process with a program of its own.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row};
use crate::small::{Work, making_children};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "exec",
    class: Class::Process,
    words: "fork of a small static process, execve of a small static program that ends at once, waitpid",
    metric: Metric::Latency,
    placements: &[Placement::None, Placement::SameCpu],
    size: None,
    count: None,
    needs: "memory files that can be executed",
    rows: &[Row::plain("exec")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    making_children(asked, Work::Execute)
}
