//! What is pending in large buffers is written before the program leaves it behind, or before its
//! descriptor becomes another file.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::FILE;

use crate::buffers;
use crate::chosen::chosen;
use crate::next;

unsafe extern "C" {
    /// Of `stdio_ext.h`: how many bytes wait to be written.
    fn __fpending(stream: *mut FILE) -> libc::size_t;
}

/// Whose memory this is. A child of vfork has it lent, and must not write what is its parent's.
static OWNER: AtomicI32 = AtomicI32::new(0);

fn process() -> c_int {
    // SAFETY: has no conditions.
    unsafe { libc::getpid() }
}

/// Watches forks: what is pending then is written, or the child would write it once more.
pub fn begin() {
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

/// Writes what waits in the streams of one descriptor, or in all.
fn write_pending(descriptor: Option<c_int>) {
    buffers::each(|stream| {
        // SAFETY: a stream with a large buffer is open.
        unsafe {
            if __fpending(stream) > 0 && descriptor.is_none_or(|one| libc::fileno(stream) == one) {
                next::fflush(stream);
            }
        }
    });
}

fn leave() {
    if chosen().has_large_buffers() && OWNER.load(Ordering::Relaxed) == process() {
        write_pending(None);
    }
}

fn replace(descriptor: c_int) {
    if chosen().has_large_buffers() && OWNER.load(Ordering::Relaxed) == process() {
        write_pending(Some(descriptor));
    }
}

fn end(status: c_int) -> ! {
    leave();
    // SAFETY: ends all threads, as the C library's own does.
    unsafe {
        libc::syscall(libc::SYS_exit_group, status);
        libc::abort()
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn _exit(status: c_int) -> ! {
    end(status)
}

/// C17 7.22.4.5.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[allow(non_snake_case)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    end(status)
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    words: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    leave();
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::execve(path, words, environment) }
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execv(path: *const c_char, words: *const *const c_char) -> c_int {
    leave();
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::execv(path, words) }
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn execvp(name: *const c_char, words: *const *const c_char) -> c_int {
    leave();
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::execvp(name, words) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn dup2(from: c_int, to: c_int) -> c_int {
    replace(to);
    // SAFETY: takes any numbers.
    unsafe { next::dup2(from, to) }
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    replace(to);
    // SAFETY: takes any numbers.
    unsafe { next::dup3(from, to, flags) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn close(descriptor: c_int) -> c_int {
    replace(descriptor);
    // SAFETY: takes any number.
    unsafe { next::close(descriptor) }
}
