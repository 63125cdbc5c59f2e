//! Sets up the launcher's signals, and restores the default actions of signals in children.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::ptr;

use equipoise_kernel::call::{check, owned};

/// Signals on which the launcher cleans up and exits.
const STOP_SIGNALS: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Highest signal number of Linux on the processors that Rust supports, except MIPS.
const MAX_SIGNAL: libc::c_int = 64;

/// The signals that stop the launcher, and those that it ignores.
pub struct Signals {
    /// Descriptor that becomes readable when a signal stops the launcher.
    pub stop: OwnedFd,
    /// Signals that the launcher ignores, but its children must not ignore.
    pub ignored: Vec<libc::c_int>,
}

impl Signals {
    /// Ignores interrupts from the terminal, because the client then closes the pipe. Makes
    /// `STOP_SIGNALS` readable from a descriptor.
    pub fn set_up() -> io::Result<Self> {
        // SAFETY: ignoring a signal installs no handler.
        unsafe {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        }
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set first. signalfd returns a new descriptor.
        let stop = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in STOP_SIGNALS {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let no_set = ptr::null_mut();
            check(libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), no_set))?;
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            owned(libc::signalfd(-1, set.as_ptr(), flags))?
        };
        Ok(Self {
            stop,
            ignored: ignored_signals(),
        })
    }
}

fn ignored_signals() -> Vec<libc::c_int> {
    (1..=MAX_SIGNAL)
        .filter(|&signal| {
            let mut action = MaybeUninit::<libc::sigaction>::uninit();
            // SAFETY: the call only writes the current action. If it fails, the action is not read.
            unsafe {
                libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0
                    && action.assume_init().sa_sigaction == libc::SIG_IGN
            }
        })
        .collect()
}

/// Restores the default actions of these signals in a child, and unblocks all signals. Safe to call
/// between vfork and exec.
pub fn reset(ignored: &[libc::c_int]) {
    let mut empty_set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: only async-signal-safe calls; the set is initialised before it is read.
    unsafe {
        for &signal in ignored {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(empty_set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, empty_set.as_ptr(), ptr::null_mut());
    }
}
