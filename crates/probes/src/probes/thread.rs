//! Probe `thread`: the test that the article's readers asked for.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::cpus::{hold, sides};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::threads::Idle;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "thread",
    class: Class::Thread,
    words: "pthread_create of a thread that ends at once, pthread_join",
    metric: Metric::Latency,
    placements: &[Placement::None, Placement::SameCpu],
    size: None,
    count: None,
    needs: "",
    rows: &[Row::plain("thread")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    hold(sides(asked.placement)?.here)?;
    Ok(Opened::latency(|count| {
        let mut token = 0;
        timed(count, || {
            token += 1;
            Idle::start(token)?.join()
        })
    }))
}
