//! Probe `read_byte`: one byte of /dev/zero.

use std::fs::File;
use std::os::fd::AsRawFd;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::{expect, problem_of, wrong};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "read_byte",
    class: Class::SystemCalls,
    words: "read of one byte from /dev/zero",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "/dev/zero",
    rows: &[Row::plain("read_byte")],
    open,
};

const PATH: &str = "/dev/zero";

fn open(_: &Asked) -> Result<Opened, Problem> {
    let file = File::open(PATH).map_err(|error| problem_of(PATH, &error))?;
    Ok(Opened::latency(move |count| {
        timed(count, || {
            let mut byte = 1_u8;
            // SAFETY: the byte is valid for writing.
            let read = unsafe { libc::read(file.as_raw_fd(), (&raw mut byte).cast(), 1) };
            expect("read", read, 1)?;
            if byte != 0 {
                return Err(wrong(PATH, byte, 0));
            }
            Ok(())
        })
    }))
}
