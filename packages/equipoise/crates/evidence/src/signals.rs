//! Forwards the observer's signals to the command, so that an observed server can be stopped.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

const FORWARDED: [libc::c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
const NO_PROCESS: libc::pid_t = 0;

/// Process id of the command. It is static because a signal handler can only use static data.
static COMMAND: AtomicI32 = AtomicI32::new(NO_PROCESS);

/// Forwards signals to the command from now on.
pub fn forward_to(command: libc::pid_t) {
    COMMAND.store(command, Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void) = forward;
    for signal in FORWARDED {
        // SAFETY: all-zero is a value of this plain structure; `forward` has the type that
        // SA_SIGINFO requires, and does only what signal safety allows.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
    }
}

/// Ignores signals from now on. The command was reaped, so its id may be used again.
pub fn stop_forwarding() {
    COMMAND.store(NO_PROCESS, Ordering::Relaxed);
}

extern "C" fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    let command = COMMAND.load(Ordering::Relaxed);
    // SAFETY: the kernel gives a valid `info`; the calls get numbers, and errno is our thread's.
    unsafe {
        // A signal of the terminal has a code above 0, and has also reached the command.
        if command != NO_PROCESS && (*info).si_code <= 0 {
            let errno = *libc::__errno_location();
            libc::kill(command, signal);
            *libc::__errno_location() = errno;
        }
    }
}
