//! Probe `exec`: a new process with a program of its own.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::cpus::{hold, sides};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row};
use crate::small::{Small, Work};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "exec",
    class: Class::Process,
    words: "fork of a static process of a few pages, exec of a static program of two kilobytes, wait",
    metric: Metric::Latency,
    placements: &[Placement::None, Placement::SameCpu],
    size: None,
    count: None,
    needs: "memory files that can be executed",
    rows: &[Row::plain("exec")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    hold(sides(asked.placement)?.here)?;
    let mut small = Small::start(Work::Execute)?;
    Ok(Opened::latency(move |count| small.children(count)))
}
