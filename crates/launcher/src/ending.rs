//! How a trial comes to its end, and what is entered of it then.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use crate::account::{self, End};
use crate::clock::monotonic_ns;
use crate::contain::PATIENCE_NS;
use crate::conversation::{poll, watch};
use crate::protocol::Report;
use crate::spawn::Started;

/// How a trial came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its process ended.
    Exited,
    /// Its time was up.
    TimedOut,
    /// It waits for a terminal that it does not have.
    Stopped,
    /// Whoever asked for it is gone, or a signal said to stop.
    Abandoned,
}

/// Takes leave of the trial and enters how it ended and what it consumed.
///
/// # Errors
/// What `poll` says.
pub fn enter_end(started: &Started, ending: Ending, report: &mut Report) -> io::Result<()> {
    if ending != Ending::Exited && !dies(started.process.as_raw_fd())? {
        report.usage_unknown("it did not die of SIGKILL: it is stuck in the kernel");
        return Ok(());
    }
    match account::last_cpu(started.pid) {
        Ok(cpu) => report.cpu = Some(cpu),
        Err(reason) => {
            report.unknown.insert("cpu", reason);
        }
    }
    match account::run_delay_s(started.pid) {
        Ok(seconds) => report.run_delay_s = Some(seconds),
        Err(reason) => {
            report.unknown.insert("run_delay_s", reason);
        }
    }
    match account::reap(started.pid) {
        Ok((end, usage)) => {
            account::enter_usage(report, &usage);
            match end {
                End::Exit(status) => report.exit = Some(status),
                End::Signal(signal) => report.signal = Some(signal),
            }
        }
        Err(error) => report.usage_unknown(&format!("its end could not be read: {error}")),
    }
    Ok(())
}

/// Whether the kernel stops a process by this signal because of a terminal: nobody continues it.
#[must_use]
pub fn is_of_terminal(signal: libc::c_int) -> bool {
    matches!(signal, libc::SIGTTIN | libc::SIGTTOU | libc::SIGTSTP)
}

/// Whether a process that was sent SIGKILL ends in time.
fn dies(process: RawFd) -> io::Result<bool> {
    let deadline = monotonic_ns() + PATIENCE_NS;
    loop {
        let mut watched = [watch(process, libc::POLLIN)];
        let now = monotonic_ns();
        poll(&mut watched, Some(deadline.saturating_sub(now)))?;
        if watched[0].revents != 0 {
            return Ok(true);
        }
        if now >= deadline {
            return Ok(false);
        }
    }
}
