//! The other side of a probe: a child that ends with the probe, however that ends.

use std::io::Write;
use std::process;
use std::ptr;

use equipoise_reporting::problem::Problem;

use crate::system::accepted;

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
        // SAFETY: this process has one thread, so the copy finds every lock as it was.
        let pid = accepted("fork", unsafe { libc::fork() })?;
        if pid > 0 {
            return Ok(Self { pid });
        }
        let status = match end_with(parent).and_then(|()| work()) {
            Ok(()) => 0,
            Err(problem) => {
                // Standard error may be closed; there is nowhere left to say so.
                let _ = writeln!(std::io::stderr(), "the other side of the probe: {problem}");
                1
            }
        };
        // SAFETY: leaves without running what is the parent's to run at its end.
        unsafe { libc::_exit(status) }
    }
}

/// The kernel kills this process when `parent` ends.
fn end_with(parent: u32) -> Result<(), Problem> {
    // SAFETY: passes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    accepted("prctl(PR_SET_PDEATHSIG)", result)?;
    if std::os::unix::process::parent_id() != parent {
        return Err(Problem::failure(
            "the probe ended before its other side began",
        ));
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
