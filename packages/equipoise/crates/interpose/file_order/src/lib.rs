//! Folders list their files in the order of their names: a library for `LD_PRELOAD`.
//!
//! Signatures and errors follow POSIX.1-2017 and readdir(3). The C library still opens, reads and
//! closes the streams; `streams` keeps a sorted `listing` for each of them.

// In a test program these names would replace those of the test harness itself.
#![cfg_attr(test, allow(dead_code))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod listing;
mod streams;

use std::ffi::{CStr, c_char, c_int, c_long};
use std::ptr;

use equipoise_interpose::{errno, exports, hooks};
use libc::{DIR, dirent64};

/// Whether `scandir` returns an entry.
pub type Filter = unsafe extern "C" fn(*const dirent64) -> c_int;
/// Which of two entries comes first.
pub type Compare = unsafe extern "C" fn(*mut *const dirent64, *mut *const dirent64) -> c_int;

/// Reads the whole folder of a stream, unless it was read already.
///
/// # Safety
/// The stream is open, and no other thread uses it.
unsafe fn begin(stream: *mut DIR) {
    // SAFETY: the caller vouches for the stream, and an entry stays until the next one is read.
    unsafe { streams::begin(stream, || next::readdir(stream)) };
}

hooks! {
    /// Returns the next entry in the order of names; null at the end.
    fn readdir(stream: *mut DIR) -> *mut dirent64 {
        let entry = errno::preserved(|| {
            begin(stream);
            streams::advance(stream)
        });
        entry.unwrap_or_else(|error| {
            errno::set(error);
            ptr::null_mut()
        })
    }

    /// Begins again, with the present content of the folder.
    fn rewinddir(stream: *mut DIR) {
        streams::forget(stream);
        next::rewinddir(stream);
    }

    /// Closes the stream.
    fn closedir(stream: *mut DIR) -> c_int {
        streams::forget(stream);
        next::closedir(stream)
    }

    /// Returns the entries of a folder, in the order of names unless `compare` gives another order.
    fn scandir(
        folder: *const c_char, entries: *mut *mut *mut dirent64, filter: Option<Filter>,
        compare: Option<Compare>,
    ) -> c_int {
        next::scandir(folder, entries, filter, compare.or(Some(by_name)))
    }
}

exports! {
    /// The same function on machines of 64 bits.
    fn readdir64(stream: *mut DIR) -> *mut dirent64 {
        readdir(stream)
    }

    /// The same function on machines of 64 bits.
    fn scandir64(
        folder: *const c_char, entries: *mut *mut *mut dirent64, filter: Option<Filter>,
        compare: Option<Compare>,
    ) -> c_int {
        scandir(folder, entries, filter, compare)
    }

    /// Returns the place of the next entry.
    fn telldir(stream: *mut DIR) -> c_long {
        streams::place(stream)
    }

    /// Goes on at a place that `telldir` returned.
    fn seekdir(stream: *mut DIR, place: c_long) {
        errno::preserved(|| begin(stream));
        streams::go_to(stream, place);
    }
}

unsafe extern "C" fn by_name(left: *mut *const dirent64, right: *mut *const dirent64) -> c_int {
    // SAFETY: scandir(3) gives two places of entries, whose names end with NUL.
    let name = |entry: *mut *const dirent64| unsafe { CStr::from_ptr((**entry).d_name.as_ptr()) };
    // The variants of an order are -1, 0 and 1.
    name(left).cmp(name(right)) as c_int
}
