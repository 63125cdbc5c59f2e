//! Writes the output pending in large buffers before the program ends or executes another one, and
//! before its descriptor becomes another file.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::intervention::current;
use crate::streams::write_pending;

/// Process that owns the buffers. A child of vfork borrows the memory of its parent, and must not
/// write the output of its parent.
static OWNER: AtomicI32 = AtomicI32::new(0);

fn process() -> c_int {
    // SAFETY: has no conditions.
    unsafe { libc::getpid() }
}

/// Writes pending output before each fork, or the child would write it again.
pub fn watch_forks() {
    extern "C" fn in_child() {
        OWNER.store(process(), Ordering::Relaxed);
    }
    unsafe extern "C" fn before() {
        write_pending(None);
    }
    unsafe extern "C" fn after() {
        in_child();
    }
    in_child();
    // SAFETY: the handlers take no arguments and stay loaded.
    unsafe { libc::pthread_atfork(Some(before), None, Some(after)) };
}

/// Writes the pending output of one descriptor, or of all, if this process owns the buffers.
fn settle(descriptor: Option<c_int>) {
    if current().has_large_buffers() && OWNER.load(Ordering::Relaxed) == process() {
        write_pending(descriptor);
    }
}

equipoise_interpose::exports! {
    /// POSIX; ends all threads, as the function of the C library does.
    fn _exit(status: c_int) -> ! {
        settle(None);
        libc::syscall(libc::SYS_exit_group, status);
        libc::abort()
    }

    /// C17 7.22.4.5.
    #[allow(non_snake_case)]
    fn _Exit(status: c_int) -> ! {
        _exit(status)
    }
}

equipoise_interpose::hooks! {
    /// POSIX.
    fn execve(
        path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char,
    ) -> c_int {
        settle(None);
        next::execve(path, arguments, environment)
    }

    /// POSIX.
    fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
        settle(None);
        next::execv(path, arguments)
    }

    /// POSIX.
    fn execvp(name: *const c_char, arguments: *const *const c_char) -> c_int {
        settle(None);
        next::execvp(name, arguments)
    }

    /// POSIX.
    fn dup2(from: c_int, to: c_int) -> c_int {
        settle(Some(to));
        next::dup2(from, to)
    }

    /// Linux.
    fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
        settle(Some(to));
        next::dup3(from, to, flags)
    }

    /// POSIX.
    fn close(descriptor: c_int) -> c_int {
        settle(Some(descriptor));
        next::close(descriptor)
    }
}
