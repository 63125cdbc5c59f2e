//! Writes the pending output of large buffers before it could be lost: before the program ends,
//! forks or executes another program, and before a descriptor is closed or replaced.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::intervention::current;
use crate::streams::write_pending;

/// Id of the process that owns the buffers. A child of vfork shares the memory of its parent, but
/// must not write the parent's output.
static OWNER: AtomicI32 = AtomicI32::new(0);

fn process() -> c_int {
    // SAFETY: has no conditions.
    unsafe { libc::getpid() }
}

/// Writes pending output before each fork from now on; else the child would write it again.
pub fn write_before_forks() {
    extern "C" fn own_buffers() {
        OWNER.store(process(), Ordering::Relaxed);
    }
    unsafe extern "C" fn before() {
        write_pending(None);
    }
    unsafe extern "C" fn after() {
        own_buffers();
    }
    own_buffers();
    // SAFETY: the handlers take no arguments and stay loaded.
    unsafe { libc::pthread_atfork(Some(before), None, Some(after)) };
}

/// Writes the pending output of one descriptor (`None`: of all), if this process owns the buffers.
fn write_own_pending(descriptor: Option<c_int>) {
    if current().has_large_buffers() && OWNER.load(Ordering::Relaxed) == process() {
        write_pending(descriptor);
    }
}

equipoise_interpose::exports! {
    /// POSIX; ends all threads, as in the C library.
    fn _exit(status: c_int) -> ! {
        write_own_pending(None);
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
        write_own_pending(None);
        next::execve(path, arguments, environment)
    }

    /// POSIX.
    fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
        write_own_pending(None);
        next::execv(path, arguments)
    }

    /// POSIX.
    fn execvp(name: *const c_char, arguments: *const *const c_char) -> c_int {
        write_own_pending(None);
        next::execvp(name, arguments)
    }

    /// POSIX.
    fn dup2(from: c_int, to: c_int) -> c_int {
        write_own_pending(Some(to));
        next::dup2(from, to)
    }

    /// Linux.
    fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
        write_own_pending(Some(to));
        next::dup3(from, to, flags)
    }

    /// POSIX.
    fn close(descriptor: c_int) -> c_int {
        write_own_pending(Some(descriptor));
        next::close(descriptor)
    }
}
