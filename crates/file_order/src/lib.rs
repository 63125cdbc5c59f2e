//! Folders list their files in the order of their names: a library for `LD_PRELOAD`.
//!
//! Signatures and errors as in POSIX.1-2017 and readdir(3); the streams are those of the C library,
//! which still opens, reads and closes them.

// In a test program these names would replace those of the test harness itself.
#![cfg_attr(test, allow(dead_code))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod errno;
mod listing;
mod next;
mod streams;

use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_long};
use std::ptr;

use libc::{DIR, dirent64};

use crate::errno::Kept;
use crate::next::{Compare, Filter, next};

/// The next entry in the order of names; null at the end.
///
/// # Safety
/// `stream` is open, and no other thread uses it.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn readdir64(stream: *mut DIR) -> *mut dirent64 {
    let kept = Kept::now();
    // SAFETY: the caller vouches for the stream.
    unsafe { streams::begin(stream) };
    match streams::advance(stream) {
        Ok(entry) => {
            kept.put_back();
            entry
        }
        Err(failure) => {
            errno::set(failure);
            ptr::null_mut()
        }
    }
}

/// As `readdir64`: with 64 bits the two are one.
///
/// # Safety
/// As for `readdir64`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn readdir(stream: *mut DIR) -> *mut dirent64 {
    // SAFETY: the caller vouches for the stream.
    unsafe { readdir64(stream) }
}

/// Begins again, with what the folder holds then.
///
/// # Safety
/// As for `readdir64`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn rewinddir(stream: *mut DIR) {
    streams::forget(stream);
    // SAFETY: the caller vouches for the stream.
    unsafe { (next().rewind)(stream) }
}

/// The place of the next entry.
///
/// # Safety
/// As for `readdir64`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn telldir(stream: *mut DIR) -> c_long {
    streams::place(stream)
}

/// Goes on at a place that `telldir` told.
///
/// # Safety
/// As for `readdir64`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn seekdir(stream: *mut DIR, place: c_long) {
    let kept = Kept::now();
    // SAFETY: the caller vouches for the stream.
    unsafe { streams::begin(stream) };
    streams::go_to(stream, place);
    kept.put_back();
}

/// Closes the stream.
///
/// # Safety
/// As for `readdir64`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn closedir(stream: *mut DIR) -> c_int {
    streams::forget(stream);
    // SAFETY: the caller vouches for the stream.
    unsafe { (next().close)(stream) }
}

/// The entries of a folder; in the order of names if none is asked for.
///
/// # Safety
/// As scandir(3) asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn scandir64(
    folder: *const c_char,
    entries: *mut *mut *mut dirent64,
    filter: Option<Filter>,
    compare: Option<Compare>,
) -> c_int {
    let compare = compare.or(Some(by_name));
    // SAFETY: the caller vouches for the arguments, and `by_name` is a comparison of entries.
    unsafe { (next().scan)(folder, entries, filter, compare) }
}

/// As `scandir64`: with 64 bits the two are one.
///
/// # Safety
/// As for `scandir64`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn scandir(
    folder: *const c_char,
    entries: *mut *mut *mut dirent64,
    filter: Option<Filter>,
    compare: Option<Compare>,
) -> c_int {
    // SAFETY: the caller vouches for the arguments.
    unsafe { scandir64(folder, entries, filter, compare) }
}

unsafe extern "C" fn by_name(one: *mut *const dirent64, other: *mut *const dirent64) -> c_int {
    // SAFETY: scandir(3) gives two places of entries, whose names end in a zero byte.
    let (one, other) = unsafe {
        (
            CStr::from_ptr((**one).d_name.as_ptr()),
            CStr::from_ptr((**other).d_name.as_ptr()),
        )
    };
    match one.cmp(other) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}
