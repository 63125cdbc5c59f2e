//! A library for `LD_PRELOAD` with which a program lists each folder in the order of names.
//!
//! Signatures and errors follow POSIX.1-2017 and readdir(3). The C library opens, reads and closes
//! the folder streams, and `streams` keeps a sorted `listing` for each open stream. `hooks!`
//! exports functions that replace functions of the C library; `next::` calls the replaced
//! functions. `exports!` exports functions that never call the replaced functions.

// A test program does not export the functions, so nothing calls them there.
#![cfg_attr(test, allow(dead_code))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod listing;
mod streams;

use std::ffi::{CStr, c_char, c_int, c_long};
use std::ptr;

use equipoise_interpose::{errno, exports, hooks};
use libc::{DIR, dirent64};

/// Function that decides whether `scandir` returns an entry.
pub type Filter = unsafe extern "C" fn(*const dirent64) -> c_int;
/// Function that compares two entries, for the order.
pub type Compare = unsafe extern "C" fn(*mut *const dirent64, *mut *const dirent64) -> c_int;

/// Reads the whole folder of a stream, unless it was read already.
///
/// # Safety
/// The stream is open, and no other thread uses it.
unsafe fn read_folder(stream: *mut DIR) {
    // SAFETY: the caller vouches for the stream. An entry stays until the next entry is read.
    unsafe { streams::read_folder(stream, || next::readdir(stream)) };
}

hooks! {
    /// Returns the next entry in the order of names; null at the end.
    fn readdir(stream: *mut DIR) -> *mut dirent64 {
        let entry = errno::preserved(|| {
            read_folder(stream);
            streams::advance(stream)
        });
        entry.unwrap_or_else(|error| {
            errno::set(error);
            ptr::null_mut()
        })
    }

    fn rewinddir(stream: *mut DIR) {
        streams::forget(stream);
        next::rewinddir(stream);
    }

    fn closedir(stream: *mut DIR) -> c_int {
        streams::forget(stream);
        next::closedir(stream)
    }

    /// Returns the entries of a folder, sorted by `compare` or, if it is absent, by name.
    fn scandir(
        folder: *const c_char, entries: *mut *mut *mut dirent64, filter: Option<Filter>,
        compare: Option<Compare>,
    ) -> c_int {
        next::scandir(folder, entries, filter, compare.or(Some(by_name)))
    }
}

exports! {
    /// The same function as `readdir` on 64-bit machines.
    fn readdir64(stream: *mut DIR) -> *mut dirent64 {
        readdir(stream)
    }

    /// The same function as `scandir` on 64-bit machines.
    fn scandir64(
        folder: *const c_char, entries: *mut *mut *mut dirent64, filter: Option<Filter>,
        compare: Option<Compare>,
    ) -> c_int {
        scandir(folder, entries, filter, compare)
    }

    /// Returns the position of the next entry.
    fn telldir(stream: *mut DIR) -> c_long {
        streams::position(stream)
    }

    fn seekdir(stream: *mut DIR, position: c_long) {
        errno::preserved(|| read_folder(stream));
        streams::go_to(stream, position);
    }
}

unsafe extern "C" fn by_name(left: *mut *const dirent64, right: *mut *const dirent64) -> c_int {
    // SAFETY: scandir(3) passes two pointers to entries, whose names end with NUL.
    let name = |entry: *mut *const dirent64| unsafe { CStr::from_ptr((**entry).d_name.as_ptr()) };
    // The values of `Ordering` are -1, 0 and 1.
    name(left).cmp(name(right)) as c_int
}
