//! Probe `threads_many`: many threads before the first is waited for.

use std::time::Duration;

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::cpus::{hold, sides};
use crate::probe::{Class, Metric, Opened, Parameter, Placement, Probe, Row, timed};
use crate::threads::Idle;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "threads_many",
    class: Class::Thread,
    words: "one of 64 threads that are all created before the first is joined",
    metric: Metric::Latency,
    placements: &[Placement::None, Placement::SameCpu],
    size: None,
    count: Some(Parameter {
        words: "threads that are created before the first is joined",
        default: 64,
        least: 1,
        most: 10_000,
    }),
    needs: "",
    rows: &[Row::plain("threads_many")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    hold(sides(asked.placement)?.here)?;
    let many = to_usize(asked.count);
    let mut threads = Vec::with_capacity(many);
    Ok(Opened::latency(move |count| {
        let took = timed(count, || {
            for token in 1..=many {
                threads.push(Idle::start(token)?);
            }
            threads.drain(..).try_for_each(Idle::join)
        })?;
        Ok(each_of(took, many))
    }))
}

fn each_of(took: Duration, many: usize) -> Duration {
    took.div_f64(many as f64)
}
