//! Waits for child processes.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::ptr;

use crate::call::{check, retry_interrupted};

/// Waits for a child to end; returns its exit status and resource use (`man 2 wait4`).
///
/// # Errors
/// The error of `wait4`.
pub fn reap(pid: libc::pid_t) -> io::Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    retry_interrupted(|| {
        // SAFETY: both pointers are valid for writing.
        check(unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) })
    })?;
    // SAFETY: all-zero is a valid rusage, and the call filled it.
    Ok((ExitStatus::from_raw(status), unsafe { usage.assume_init() }))
}

/// Waits until any child of this process changes its state; returns its process id and wait status.
///
/// # Errors
/// The error of `waitpid`.
pub fn wait_for_any(options: libc::c_int) -> io::Result<(libc::pid_t, ExitStatus)> {
    let mut status = 0;
    let pid = retry_interrupted(|| {
        // SAFETY: the status is valid for writing.
        check(unsafe { libc::waitpid(-1, &raw mut status, options) })
    })?;
    Ok((pid, ExitStatus::from_raw(status)))
}

/// Waits for a child to end, and ignores its status.
pub fn discard(pid: libc::pid_t) {
    // SAFETY: passes numbers and a null pointer, which the call allows.
    unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
}

/// Lets the kernel kill this process when the thread that started it ends.
///
/// A child of fork or vfork may call this function: it allocates no memory and takes no lock.
///
/// # Errors
/// The error of `prctl`.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: passes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_reaped_with_its_status() {
        // SAFETY: the child ends at once.
        let pid = match unsafe { libc::fork() } {
            // SAFETY: ends the child.
            0 => unsafe { libc::_exit(3) },
            pid => pid,
        };
        let (status, usage) = reap(pid).expect("reaped");
        assert_eq!(status.code(), Some(3));
        assert!(usage.ru_maxrss > 0);
        assert!(reap(pid).is_err());
    }
}
