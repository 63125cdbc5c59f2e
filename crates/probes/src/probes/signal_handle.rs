//! Probe `signal_handle`: a signal to oneself, less what sending it costs.
//!
//! Each batch is done twice, with the handler and with the signal ignored, which the kernel
//! finds out while it is sent; the difference is what is reported.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::handlers::{Action, counting, handled, see_that_handled, send_to_oneself};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "signal_handle",
    class: Class::Signals,
    words: "a signal to oneself and its handler, less the same kill of an ignored signal",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "",
    rows: &[Row::plain("signal_handle")],
    open,
};

const SIGNAL: libc::c_int = libc::SIGUSR1;

#[expect(clippy::unnecessary_wraps, reason = "as every probe is opened")]
fn open(_: &Asked) -> Result<Opened, Problem> {
    // SAFETY: takes nothing and changes nothing.
    let process = unsafe { libc::getpid() };
    let handling = Action::new(counting as *const () as libc::sighandler_t, 0);
    let ignoring = Action::new(libc::SIG_IGN, 0);
    Ok(Opened::latency(move |count| {
        handling.install(SIGNAL)?;
        let before = handled();
        let with_handler = timed(count, || send_to_oneself(process, SIGNAL))?;
        see_that_handled(count, before)?;
        ignoring.install(SIGNAL)?;
        let ignored = timed(count, || send_to_oneself(process, SIGNAL))?;
        with_handler.checked_sub(ignored).ok_or_else(|| {
            Problem::failure("a signal with a handler took less time than one that is ignored")
        })
    }))
}
