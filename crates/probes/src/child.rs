//! Child processes, which end with the probe, however that ends, and helpers, which are held on
//! their own CPU.
//!
//! No figure comes from a helper that is not there: it reports on which CPU it runs before anything
//! is measured, and if it ends too early the probe ends with it.

use std::ffi::c_int;
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, ExitStatus};
use std::ptr;

use equipoise_reporting::problem::Problem;

use crate::cpus::hold;
use crate::handlers::Action;
use crate::system::{accepted, expect, problem_of};

/// A child process; killed and reaped when dropped.
///
/// It stays in the probe's process group, so that whoever ends the group ends it too, and the
/// kernel kills it when the probe dies.
pub struct Child {
    pid: libc::pid_t,
}

impl Child {
    /// Starts a copy of this process, which has one thread, that does `work` and leaves.
    ///
    /// A problem of the work goes to standard error; the probe finds out by what the child no
    /// longer does.
    ///
    /// # Errors
    /// What `fork` says.
    pub fn start(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        let parent = process::id();
        Self::fork(move || {
            die_with(parent).map_err(|error| problem_of("prctl", &error))?;
            work()
        })
    }

    /// The same in a session of its own, and not killed when the probe dies: `work` must end
    /// then by itself.
    ///
    /// # Errors
    /// What `fork` says.
    pub fn start_alone(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        Self::fork(move || {
            // SAFETY: takes nothing; a child that was just made leads no process group.
            accepted("setsid", unsafe { libc::setsid() })?;
            work()
        })
    }

    fn fork(work: impl FnOnce() -> Result<(), Problem>) -> Result<Self, Problem> {
        // SAFETY: this process has one thread, so the copy finds every lock as it was.
        let pid = accepted("fork", unsafe { libc::fork() })?;
        if pid > 0 {
            return Ok(Self { pid });
        }
        let status = match work() {
            Ok(()) => 0,
            Err(problem) => {
                // Standard error may be closed; there is nowhere left to say so.
                let _ = writeln!(io::stderr(), "the other side of the probe: {problem}");
                1
            }
        };
        // SAFETY: leaves without running what is the parent's to run at its end.
        unsafe { libc::_exit(status) }
    }

    /// Waits until it leaves by itself.
    ///
    /// # Errors
    /// What `waitpid` says.
    pub fn wait(self) -> Result<ExitStatus, Problem> {
        let mut status = 0;
        // SAFETY: the status can be written; the child was not reaped yet.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        expect("waitpid", pid, self.pid)?;
        std::mem::forget(self);
        Ok(ExitStatus::from_raw(status))
    }
}

/// Has the kernel kill this process when the thread of `parent` that started it ends; for the
/// start of a child. Allocates nothing and takes no lock.
///
/// # Errors
/// What `prctl` says, or that the parent is gone already.
pub fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: passes numbers only.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if std::os::unix::process::parent_id() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: passes numbers only; the child was not reaped, so the number is still its own.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), 0);
        }
    }
}

const FAILED: c_int = 1;

/// A process that works for this one until it is dropped.
pub struct Helper {
    _child: Child,
    cpu: c_int,
}

impl Helper {
    /// Starts one on that CPU (`None`: wherever the kernel puts it). `work` must go on for as
    /// long as the helper is kept; what it takes along is closed in this process.
    ///
    /// # Errors
    /// If the system refuses the process or the CPU, or the helper ends before it works.
    pub fn start(
        cpu: Option<usize>,
        work: impl FnOnce() -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        end_with_a_child(true)?;
        let (mut ready, told) = io::pipe().map_err(|error| problem_of("pipe", &error))?;
        let child = Child::start(move || {
            hold(cpu)?;
            say_the_cpu(told)?;
            work()?;
            Err(Problem::failure("it has nothing left to do"))
        })?;
        let mut found = [0; size_of::<c_int>()];
        ready
            .read_exact(&mut found)
            .map_err(|error| problem_of("the other side", &error))?;
        Ok(Self {
            _child: child,
            cpu: c_int::from_ne_bytes(found),
        })
    }

    /// The CPU on which it found itself when it began.
    pub fn cpu(&self) -> c_int {
        self.cpu
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // From here on the end of the helper is no surprise. The default is always accepted.
        let _ = end_with_a_child(false);
    }
}

/// The CPU that the calling thread runs on.
///
/// # Errors
/// What `sched_getcpu` says.
pub fn cpu_here() -> Result<c_int, Problem> {
    // SAFETY: takes nothing and touches no memory of ours.
    accepted("sched_getcpu", unsafe { libc::sched_getcpu() })
}

fn say_the_cpu(mut told: PipeWriter) -> Result<(), Problem> {
    told.write_all(&cpu_here()?.to_ne_bytes())
        .map_err(|error| problem_of("pipe", &error))
}

/// Whether the end of a child ends this process too: it may be waiting for an answer (a datagram,
/// a futex) that no end of file stands in for, and nothing else would wake it up.
fn end_with_a_child(so: bool) -> Result<(), Problem> {
    let handler = if so {
        leave as *const () as libc::sighandler_t
    } else {
        libc::SIG_DFL
    };
    Action::new(handler, 0).install(libc::SIGCHLD)
}

extern "C" fn leave(_: c_int) {
    const WORDS: &[u8] = b"equipoise-probe: the other side of the probe ended too early\n";
    // SAFETY: both calls are async-signal-safe, and the bytes are there for ever.
    unsafe {
        libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
        libc::_exit(FAILED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, pipe};

    #[test]
    fn a_child_does_its_work_and_is_gone_when_dropped() {
        let (mut reader, mut writer) = pipe().expect("a pipe");
        let child = Child::start(move || {
            writer.write_all(b"x").expect("written");
            loop {
                std::thread::park();
            }
        })
        .expect("started");
        let mut byte = [0];
        reader.read_exact(&mut byte).expect("the child wrote");
        let pid = child.pid;
        drop(child);
        // SAFETY: passes numbers only; signal 0 sends nothing.
        assert_eq!(unsafe { libc::kill(pid, 0) }, -1);
    }
}
