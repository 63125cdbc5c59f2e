//! Probe `stat`: what the kernel knows of a file, by its path.

use std::mem::MaybeUninit;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::fixed_path::{FIXED, fixed_file};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::{expect, wrong};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "stat",
    class: Class::SystemCalls,
    words: "stat of /etc/passwd",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "/etc/passwd",
    rows: &[Row::plain("stat")],
    open,
};

fn open(_: &Asked) -> Result<Opened, Problem> {
    let system = fixed_file()?;
    let expected = number()?;
    Ok(Opened::latency(move |count| {
        timed(count, || {
            let number = number()?;
            if number != expected {
                return Err(wrong("stat", number, expected));
            }
            Ok(())
        })
    })
    .with_fact("file_system", system))
}

/// The file's number.
#[inline]
fn number() -> Result<libc::ino_t, Problem> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path ends with a null byte, and the answer can be written.
    let result = unsafe { libc::stat(FIXED.as_ptr(), found.as_mut_ptr()) };
    expect("stat", result, 0)?;
    // SAFETY: the call filled it.
    Ok(unsafe { found.assume_init() }.st_ino)
}
