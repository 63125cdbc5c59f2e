//! Signals of the launcher, and signals whose default actions its children must get back.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::ptr;

use equipoise_kernel::call::{check, owned};

/// On these the launcher cleans up and leaves.
const STOP: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Highest signal number of Linux on the machines that Rust supports, but MIPS.
const LAST_SIGNAL: libc::c_int = 64;

/// The launcher's signals after they were set up.
pub struct Signals {
    /// Descriptor that is readable as soon as a signal stops the launcher.
    pub stop: OwnedFd,
    /// Signals that the launcher ignores, and its children must not.
    pub ignored: Vec<libc::c_int>,
}

impl Signals {
    /// Ignores an interrupt from the terminal (the process that drives the launcher closes the pipe
    /// to end it) and reads the signals to stop from a descriptor.
    pub fn set_up() -> io::Result<Self> {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe {
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        }
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set, and then it is only added to and
        // read. signalfd returns a new descriptor.
        let stop = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in STOP {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            let no_set = ptr::null_mut();
            check(libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), no_set))?;
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            owned(libc::signalfd(-1, set.as_ptr(), flags))?
        };
        Ok(Self {
            stop,
            ignored: ignored(),
        })
    }
}

fn ignored() -> Vec<libc::c_int> {
    (1..=LAST_SIGNAL)
        .filter(|&signal| {
            let mut action = MaybeUninit::<libc::sigaction>::uninit();
            // SAFETY: with no new action the call only writes the present one; it fails for the
            // numbers that libc reserves, and then nothing is read.
            unsafe {
                libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0
                    && action.assume_init().sa_sigaction == libc::SIG_IGN
            }
        })
        .collect()
}

/// Gives a child the default action for each of these signals, and blocks none.
///
/// Safe to call between vfork and exec.
pub fn reset(ignored: &[libc::c_int]) {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: only async-signal-safe calls; the set is initialised before it is read.
    unsafe {
        for &signal in ignored {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}
