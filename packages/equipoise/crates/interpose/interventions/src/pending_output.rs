//! Writes the pending output of large buffers before it could be lost: before the program ends,
//! forks or executes another program, and before a descriptor is closed or replaced.
//!
//! `hooks!` exports functions that replace functions of the C library; `next::` calls the replaced
//! functions. `exports!` exports functions that never call the replaced functions.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::intervention::current;
use crate::streams::write_pending;

/// Id of the process that owns the buffers. A child of vfork shares the memory of its parent, but
/// must not write the parent's output.
static OWNER: AtomicI32 = AtomicI32::new(0);

fn process_id() -> c_int {
    // SAFETY: has no conditions.
    unsafe { libc::getpid() }
}

/// Writes pending output before each fork from now on; else the child would write it again.
pub fn write_before_forks() {
    extern "C" fn become_owner() {
        OWNER.store(process_id(), Ordering::Relaxed);
    }
    unsafe extern "C" fn before() {
        write_pending(None);
    }
    unsafe extern "C" fn after() {
        become_owner();
    }
    become_owner();
    // SAFETY: the handlers take no arguments and stay loaded.
    unsafe { libc::pthread_atfork(Some(before), None, Some(after)) };
}

/// Writes the pending output of one descriptor (`None`: of all), if this process owns the buffers.
fn write_if_owner(descriptor: Option<c_int>) {
    if current().has_large_buffers() && OWNER.load(Ordering::Relaxed) == process_id() {
        write_pending(descriptor);
    }
}

equipoise_interpose::exports! {
    /// Ends all threads, as in the C library.
    fn _exit(status: c_int) -> ! {
        write_if_owner(None);
        libc::syscall(libc::SYS_exit_group, status);
        libc::abort()
    }

    #[allow(non_snake_case)]
    fn _Exit(status: c_int) -> ! {
        _exit(status)
    }
}

equipoise_interpose::hooks! {
    fn execve(
        path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char,
    ) -> c_int {
        write_if_owner(None);
        next::execve(path, arguments, environment)
    }

    fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int {
        write_if_owner(None);
        next::execv(path, arguments)
    }

    fn execvp(name: *const c_char, arguments: *const *const c_char) -> c_int {
        write_if_owner(None);
        next::execvp(name, arguments)
    }

    fn dup2(from: c_int, to: c_int) -> c_int {
        write_if_owner(Some(to));
        next::dup2(from, to)
    }

    fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
        write_if_owner(Some(to));
        next::dup3(from, to, flags)
    }

    fn close(descriptor: c_int) -> c_int {
        write_if_owner(Some(descriptor));
        next::close(descriptor)
    }
}
