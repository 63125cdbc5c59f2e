//! Files that the program puts out of the page cache stay in it.

use std::ffi::c_int;

use libc::off64_t;

use crate::chosen::{Chosen, chosen};
use crate::next;

/// POSIX; the result is the error number.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn posix_fadvise(
    descriptor: c_int,
    offset: off64_t,
    bytes: off64_t,
    advice: c_int,
) -> c_int {
    if advice == libc::POSIX_FADV_DONTNEED && chosen() == Chosen::KeepCache {
        // SAFETY: asks about a number.
        let open = unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
        return if open { 0 } else { libc::EBADF };
    }
    // SAFETY: takes any numbers.
    unsafe { next::posix_fadvise(descriptor, offset, bytes, advice) }
}

/// With 64 bits the same.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn posix_fadvise64(
    descriptor: c_int,
    offset: off64_t,
    bytes: off64_t,
    advice: c_int,
) -> c_int {
    posix_fadvise(descriptor, offset, bytes, advice)
}
