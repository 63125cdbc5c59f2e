//! Probe `signal_handle`: a signal to oneself, less what sending it costs.
//!
//! What sending costs is measured first, with the signal ignored, which the kernel finds out while
//! it is sent.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::batches::{less, time_to_keep_out};
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

fn open(_: &Asked) -> Result<Opened, Problem> {
    // SAFETY: takes nothing and changes nothing.
    let process = unsafe { libc::getpid() };
    Action::new(libc::SIG_IGN, 0).install(SIGNAL)?;
    let mut kill = move |count| timed(count, || send_to_oneself(process, SIGNAL));
    let kill_s = time_to_keep_out(&mut kill)?;
    Action::new(counting as *const () as libc::sighandler_t, 0).install(SIGNAL)?;
    let opened = Opened::latency(move |count| {
        let before = handled();
        let took = kill(count)?;
        see_that_handled(count, before)?;
        less(took, count, kill_s)
    });
    Ok(opened.with_fact("subtracted_s", kill_s.to_string()))
}
