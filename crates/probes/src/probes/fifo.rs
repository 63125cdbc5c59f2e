//! Probe `fifo`: round trips of one byte through a pair of named pipes.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::channel::{End, Ends};
use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::round_trip::{self, PLACEMENTS};
use crate::scratch::Scratch;
use crate::system::{expect, problem_of};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "fifo",
    class: Class::Ipc,
    words: "one byte to another process and its answer back, through two named pipes",
    metric: Metric::Latency,
    placements: PLACEMENTS,
    size: None,
    count: None,
    needs: "a folder whose file system has named pipes",
    rows: &[
        Row::plain("fifo_same_cpu").at(Placement::SameCpu),
        Row::plain("fifo_across_cpus").at(Placement::AcrossCpus),
    ],
    open: |asked| round_trip::open(asked, || ends(asked)),
};

/// Two named pipes, which lose their names once both ends are open.
fn ends(asked: &Asked) -> Result<Ends, Problem> {
    let scratch = Scratch::new(asked)?;
    let (question_in, question_out) = named(&scratch.path().join("question"))?;
    let (answer_in, answer_out) = named(&scratch.path().join("answer"))?;
    Ok((
        End::new(answer_in, question_out),
        End::new(question_in, answer_out),
    ))
}

/// A new named pipe, opened for reading and for writing.
fn named(path: &Path) -> Result<(File, File), Problem> {
    const MODE: libc::mode_t = 0o600;
    let name = CString::new(path.as_os_str().as_bytes()).expect("the folder was made so");
    // SAFETY: the name ends with a null byte.
    expect("mkfifo", unsafe { libc::mkfifo(name.as_ptr(), MODE) }, 0)?;
    let opened = |error| problem_of("opening a named pipe", &error);
    // Whoever opens it for reading only waits for a writer, unless told not to.
    let reader = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(opened)?;
    let writer = File::options().write(true).open(path).map_err(opened)?;
    // SAFETY: passes numbers only; without a flag, reading waits for bytes.
    let result = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, 0) };
    expect("fcntl(F_SETFL)", result, 0)?;
    Ok((reader, writer))
}
