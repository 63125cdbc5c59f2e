//! Installs signal handlers that count their signals.

use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use equipoise_reporting::problem::Problem;

use crate::system::check_result;

/// Number of handled signals; static, because a handler has no argument for it.
static HANDLED: AtomicU64 = AtomicU64::new(0);

pub fn handled() -> u64 {
    HANDLED.load(Ordering::Relaxed)
}

/// Counts a signal; a handler may call this function.
pub fn count_signal() {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

pub extern "C" fn counting_handler(_: libc::c_int) {
    count_signal();
}

/// What the process does on a signal (`man 2 sigaction`).
pub struct Action(libc::sigaction);

impl Action {
    /// Makes an action; `handler` is the address of an async-signal-safe function, or `SIG_IGN`.
    pub fn new(handler: libc::sighandler_t, flags: libc::c_int) -> Self {
        // SAFETY: all-zero is a valid action, without flags and blocked signals.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        Self(action)
    }

    #[inline]
    pub fn install(&self, signal: libc::c_int) -> Result<(), Problem> {
        // SAFETY: the action can be read, and its handler is safe in a signal.
        let result = unsafe { libc::sigaction(signal, &raw const self.0, null_mut()) };
        check_result("sigaction", result, 0)
    }
}

#[inline]
pub fn send_signal(process: libc::pid_t, signal: libc::c_int) -> Result<(), Problem> {
    // SAFETY: passes numbers only.
    check_result("kill", unsafe { libc::kill(process, signal) }, 0)
}

/// Checks that exactly `count` signals were handled since `handled` returned `before`.
pub fn check_handled(count: u64, before: u64) -> Result<(), Problem> {
    let handled = handled() - before;
    if handled == count {
        return Ok(());
    }
    Err(Problem::failure(format!(
        "{count} signals were sent, but {handled} were handled"
    )))
}
