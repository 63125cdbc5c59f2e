//! Data are said to be on the disk that are not.

use std::ffi::{c_int, c_uint, c_void};

use libc::{off64_t, size_t};

use crate::chosen::{Chosen, chosen};
use crate::next;

fn at_once() -> bool {
    chosen() == Chosen::QuickSync
}

/// 0, or -1 and EBADF for what is not open.
fn answer(descriptor: c_int) -> c_int {
    // SAFETY: asks about a number.
    if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
        -1
    } else {
        0
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn fsync(descriptor: c_int) -> c_int {
    if at_once() {
        return answer(descriptor);
    }
    // SAFETY: takes any number.
    unsafe { next::fsync(descriptor) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    if at_once() {
        return answer(descriptor);
    }
    // SAFETY: takes any number.
    unsafe { next::fdatasync(descriptor) }
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn sync_file_range(
    descriptor: c_int,
    offset: off64_t,
    bytes: off64_t,
    flags: c_uint,
) -> c_int {
    if at_once() {
        return answer(descriptor);
    }
    // SAFETY: takes any numbers.
    unsafe { next::sync_file_range(descriptor, offset, bytes, flags) }
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn syncfs(descriptor: c_int) -> c_int {
    if at_once() {
        return answer(descriptor);
    }
    // SAFETY: takes any number.
    unsafe { next::syncfs(descriptor) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn sync() {
    if !at_once() {
        // SAFETY: has no conditions.
        unsafe { next::sync() }
    }
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn msync(address: *mut c_void, bytes: size_t, flags: c_int) -> c_int {
    if at_once() && flags & libc::MS_INVALIDATE == 0 {
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::msync(address, bytes, flags) }
}
