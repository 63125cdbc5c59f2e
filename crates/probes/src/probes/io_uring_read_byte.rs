//! Probe `io_uring_read_byte`: as `read_byte`, handed over by `io_uring` many times at once.

use std::fs::File;
use std::os::fd::AsRawFd;

use equipoise_reporting::problem::Problem;
use io_uring::opcode::Read;
use io_uring::types::Fd;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row};
use crate::submissions::{self, BATCH, NEEDS};
use crate::system::problem_of;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "io_uring_read_byte",
    class: Class::SystemCalls,
    words: "read of one byte from /dev/zero, handed over by io_uring 32 at a time",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: Some(BATCH),
    needs: NEEDS,
    rows: &[Row::plain("io_uring_read_byte")],
    open,
};

const PATH: &str = "/dev/zero";

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let file = File::open(PATH).map_err(|error| problem_of(PATH, &error))?;
    let mut byte = Box::new(1_u8);
    let read = Read::new(Fd(file.as_raw_fd()), &raw mut *byte, 1).build();
    // SAFETY: the file and the byte, which stays in its box, are kept.
    unsafe { submissions::open(asked, read, 1, (file, byte)) }
}
