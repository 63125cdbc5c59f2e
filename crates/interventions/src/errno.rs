//! The error number of this thread.

use std::ffi::c_int;

/// What it was.
pub struct Kept(c_int);

impl Kept {
    /// As it is now.
    pub fn now() -> Self {
        // SAFETY: gives the place of this thread's own number, which is always there.
        Self(unsafe { *libc::__errno_location() })
    }

    /// Makes it what it was.
    pub fn put_back(&self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
