//! A small static process, which forks as often as it is told.
//!
//! What a fork costs follows from what there is to copy, so the probe itself would be in it. The
//! program (`small/`, built by `build.rs`) lies in a memory file without a name: nothing is left
//! of it, wherever the probe is stopped.

use std::ffi::c_uint;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::child::die_with;
use crate::cpus::{hold, sides};
use crate::memory::room_for;
use crate::probe::Opened;
use crate::system::{accepted, problem_of};

/// The program; empty where it could not be built.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/small"));

/// The status with which it ends, and no shell.
const DONE: i32 = 242;

const SHELL: &str = "/bin/sh";

/// What each child of the small process does.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// It ends at once; the small process holds so many bytes.
    End(u64),
    /// It executes the small program, which ends at once.
    Execute,
    /// It executes `/bin/sh -c` with the path of the small program.
    Shell,
}

/// A probe that has the small process make children.
///
/// # Errors
/// As [`Small::start`], or that there is no such place for it.
pub fn making_children(asked: &Asked, work: Work) -> Result<Opened, Problem> {
    hold(sides(asked.placement)?.here)?;
    let mut small = Small::start(work)?;
    let opened = Opened::latency(move |count| small.children(count));
    Ok(opened.with_fact("small_program_bytes", PROGRAM.len().to_string()))
}

/// The small process; it ends when dropped, and when the probe dies.
struct Small {
    process: Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    _program: File,
}

impl Small {
    /// Starts it, after what its children are to execute was seen to work.
    ///
    /// # Errors
    /// Unavailable if that cannot be executed here.
    fn start(work: Work) -> Result<Self, Problem> {
        let program = memory_file()?;
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        let (mode, detail) = match work {
            Work::End(bytes) => ("fork", room_for(bytes)?.to_string()),
            Work::Execute => ("exec", path.clone()),
            Work::Shell => ("sh", path.clone()),
        };
        see_that_it_works(&mut Command::new(&path), "a program in a memory file")?;
        if matches!(work, Work::Shell) {
            see_that_it_works(Command::new(SHELL).args(["-c", &path]), SHELL)?;
        }
        let parent = std::process::id();
        let mut command = Command::new(&path);
        command
            .args([mode, &detail])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // SAFETY: two system calls, which allocate nothing and take no lock.
        unsafe { command.pre_exec(move || die_with(parent)) };
        let mut process = command
            .spawn()
            .map_err(|error| problem_of("the small process", &error))?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            unreachable!("both were asked for");
        };
        Ok(Self {
            process,
            requests: Some(requests),
            answers,
            _program: program,
        })
    }

    /// Has it make so many children, one after the other, and wait for each.
    ///
    /// # Errors
    /// If it could not, or a child did not end as it must.
    fn children(&mut self, count: u64) -> Result<Duration, Problem> {
        let answer = self
            .ask(count)
            .map_err(|error| problem_of("the small process", &error))?;
        let [nanoseconds, what, detail] = answer;
        let number = i32::try_from(detail).unwrap_or_default();
        let refused = |call| problem_of(call, &io::Error::from_raw_os_error(number));
        match what {
            0 => Ok(Duration::from_nanos(nanoseconds)),
            1 => Err(refused("fork")),
            2 => Err(refused("wait4")),
            4 => Err(refused("the memory to hold")),
            _ => Err(Problem::failure(format!(
                "a child ended with the wait status {detail:#x}, not with exit status {DONE}"
            ))),
        }
    }

    fn ask(&mut self, count: u64) -> io::Result<[u64; 3]> {
        if let Some(requests) = &mut self.requests {
            requests.write_all(&count.to_ne_bytes())?;
        }
        let mut number = || -> io::Result<u64> {
            let mut bytes = [0; 8];
            self.answers.read_exact(&mut bytes)?;
            Ok(u64::from_ne_bytes(bytes))
        };
        Ok([number()?, number()?, number()?])
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // It ends when there can be no more requests.
        drop(self.requests.take());
        // Nothing is left to do for a process that cannot be waited for.
        let _ = self.process.wait();
    }
}

/// A file without a name, which whoever has its descriptor can execute.
fn memory_file() -> Result<File, Problem> {
    /// Of `memfd_create(2)`, from Linux 6.3 on.
    const MFD_EXEC: c_uint = 0x10;
    if PROGRAM.is_empty() {
        return Err(Problem::unavailable(
            "this Equipoise was built where there was no static C library, and the process probes \
             start a static program; build it anew with one (Debian: libc6-dev)",
        ));
    }
    let create = |flags: c_uint| {
        // SAFETY: the name ends with a null byte.
        unsafe { libc::memfd_create(c"equipoise-small".as_ptr(), flags) }
    };
    let mut descriptor = create(MFD_EXEC);
    if descriptor < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        descriptor = create(0);
    }
    let descriptor = accepted("memfd_create", descriptor)?;
    // SAFETY: a new descriptor that nobody else owns.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all(PROGRAM)
        .map_err(|error| problem_of("a memory file", &error))?;
    Ok(file)
}

fn see_that_it_works(command: &mut Command, name: &str) -> Result<(), Problem> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| Problem::unavailable(format!("{name} cannot be executed: {error}")))?;
    if status.code() == Some(DONE) {
        return Ok(());
    }
    Err(Problem::unavailable(format!(
        "{name} did not do what it was given: {status}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_child_is_made_and_ends_as_it_must() {
        for work in [Work::End(0), Work::End(1 << 20), Work::Execute, Work::Shell] {
            let mut small = Small::start(work).expect("started");
            for count in [1, 3] {
                let took = small.children(count).expect("made");
                assert!(took > Duration::ZERO, "{work:?}");
            }
        }
    }

    #[test]
    fn what_does_not_do_its_work_is_unavailable() {
        for command in ["/bin/true", "/no/such/program"] {
            let problem = see_that_it_works(&mut Command::new(command), command)
                .expect_err("it does not end as the small program does");
            assert!(problem.is_unavailable(), "{problem}");
        }
    }
}
