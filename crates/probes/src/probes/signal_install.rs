//! Probe `signal_install`: a handler for a signal.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::handlers::{Action, counting};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "signal_install",
    class: Class::Signals,
    words: "sigaction, which installs a handler",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "",
    rows: &[Row::plain("signal_install")],
    open,
};

#[expect(clippy::unnecessary_wraps, reason = "as every probe is opened")]
fn open(_: &Asked) -> Result<Opened, Problem> {
    let action = Action::new(counting as *const () as libc::sighandler_t, 0);
    Ok(Opened::latency(move |count| {
        timed(count, || action.install(libc::SIGUSR1))
    }))
}
