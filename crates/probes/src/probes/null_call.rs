//! Probe `null_call`: the cheapest real system call.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::expect;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "null_call",
    class: Class::SystemCalls,
    words: "getppid by the system call itself",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "",
    rows: &[Row::plain("null_call")],
    open,
};

#[expect(clippy::unnecessary_wraps, reason = "as every probe is opened")]
fn open(_: &Asked) -> Result<Opened, Problem> {
    let parent = libc::c_long::from(std::os::unix::process::parent_id());
    Ok(Opened::latency(move |count| {
        timed(count, || {
            // SAFETY: takes nothing and changes nothing.
            expect(
                "getppid",
                unsafe { libc::syscall(libc::SYS_getppid) },
                parent,
            )
        })
    }))
}
