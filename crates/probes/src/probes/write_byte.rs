//! Probe `write_byte`: one byte to /dev/null.

use std::fs::File;
use std::os::fd::AsRawFd;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::{expect, problem_of};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "write_byte",
    class: Class::SystemCalls,
    words: "write of one byte to /dev/null",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "/dev/null",
    rows: &[Row::plain("write_byte")],
    open,
};

const PATH: &str = "/dev/null";

fn open(_: &Asked) -> Result<Opened, Problem> {
    let file = File::options()
        .write(true)
        .open(PATH)
        .map_err(|error| problem_of(PATH, &error))?;
    Ok(Opened::latency(move |count| {
        timed(count, || {
            let byte = 0_u8;
            // SAFETY: the byte is valid for reading.
            let written = unsafe { libc::write(file.as_raw_fd(), (&raw const byte).cast(), 1) };
            expect("write", written, 1)
        })
    }))
}
