//! The other side of a probe: a child that ends with the probe, however that ends.

use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, ExitStatus};
use std::ptr;

use equipoise_reporting::problem::Problem;

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
