//! The error number of the calling thread.

use std::ffi::c_int;

/// Returns the error number.
#[must_use]
pub fn get() -> c_int {
    // SAFETY: the C library gives every thread a valid location.
    unsafe { *libc::__errno_location() }
}

/// Sets the error number.
pub fn set(number: c_int) {
    // SAFETY: the C library gives every thread a valid location.
    unsafe { *libc::__errno_location() = number };
}

/// Runs `work` and restores the error number, so the program does not see errors of the library.
pub fn preserved<T>(work: impl FnOnce() -> T) -> T {
    let before = get();
    let result = work();
    set(before);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_leaves_the_error_number_as_it_was() {
        set(libc::EINTR);
        assert_eq!(preserved(|| set(libc::EIO)), ());
        assert_eq!(get(), libc::EINTR);
    }
}
