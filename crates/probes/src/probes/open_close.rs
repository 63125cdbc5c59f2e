//! Probe `open_close`: a descriptor of a file, and back.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::fixed_path::{FIXED, fixed_file};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::{accepted, expect};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "open_close",
    class: Class::SystemCalls,
    words: "open of /etc/passwd for reading, and close",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "/etc/passwd",
    rows: &[Row::plain("open_close")],
    open,
};

fn open(_: &Asked) -> Result<Opened, Problem> {
    let system = fixed_file()?;
    Ok(Opened::latency(move |count| {
        timed(count, || {
            // SAFETY: the path ends with a null byte.
            let descriptor = unsafe { libc::open(FIXED.as_ptr(), libc::O_RDONLY) };
            let descriptor = accepted("open", descriptor)?;
            // SAFETY: a descriptor that was opened just now, and that nobody else has.
            expect("close", unsafe { libc::close(descriptor) }, 0)
        })
    })
    .with_fact("file_system", system))
}
