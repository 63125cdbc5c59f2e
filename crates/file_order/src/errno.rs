//! The error number of this thread.

use std::ffi::c_int;

/// What it was.
pub struct Kept(c_int);

impl Kept {
    /// As it is now.
    pub fn now() -> Self {
        Self(get())
    }

    /// Makes it what it was.
    pub fn put_back(&self) {
        set(self.0);
    }
}

/// What it is.
pub fn get() -> c_int {
    // SAFETY: gives the place of this thread's own number, which is always there.
    unsafe { *libc::__errno_location() }
}

/// Makes it this.
pub fn set(number: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = number };
}
