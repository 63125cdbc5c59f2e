//! Streams of the C library with large buffers, whatever the program asks for.

use std::ffi::{c_char, c_int};

use libc::{FILE, size_t};

use crate::buffers::{self, Slot};
use crate::chosen::{Chosen, chosen};
use crate::{leaving, next};

unsafe extern "C" {
    static stdout: *mut FILE;
    static stderr: *mut FILE;
}

/// Gives standard output and standard error their buffers, before the program begins.
pub fn begin() {
    if !chosen().has_large_buffers() {
        return;
    }
    leaving::begin();
    // SAFETY: both are open streams before main.
    unsafe {
        enlarge(stdout);
        enlarge(stderr);
    }
}

/// # Safety
/// The stream is open, and nothing was read or written since it was opened.
unsafe fn enlarge(stream: *mut FILE) {
    let Some(slot) = Slot::claim(stream) else {
        return;
    };
    // SAFETY: the caller vouches for the stream; the buffer is its own until it is closed.
    let refused =
        unsafe { next::setvbuf(stream, slot.buffer(), libc::_IOFBF, buffers::BUFFER_BYTES) };
    if refused != 0 {
        slot.release();
    }
}

/// # Safety
/// As `enlarge`; null is passed over.
unsafe fn opened(stream: *mut FILE) -> *mut FILE {
    if !stream.is_null() && chosen().has_large_buffers() {
        // SAFETY: the caller vouches for the stream.
        unsafe { enlarge(stream) };
    }
    stream
}

/// C17 7.21.5.3.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller vouches for the arguments.
    unsafe { opened(next::fopen(path, mode)) }
}

/// With 64 bits the same.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller vouches for the arguments.
    unsafe { opened(next::fopen64(path, mode)) }
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fdopen(descriptor: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: the caller vouches for the arguments.
    unsafe { opened(next::fdopen(descriptor, mode)) }
}

/// C17 7.21.5.4.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn freopen(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    let slot = Slot::closing(stream);
    // SAFETY: the caller vouches for the arguments.
    let fresh = unsafe { next::freopen(path, mode, stream) };
    reopened(slot, fresh)
}

/// With 64 bits the same.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn freopen64(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    let slot = Slot::closing(stream);
    // SAFETY: the caller vouches for the arguments.
    let fresh = unsafe { next::freopen64(path, mode, stream) };
    reopened(slot, fresh)
}

fn reopened(slot: Option<Slot>, fresh: *mut FILE) -> *mut FILE {
    if let Some(slot) = slot {
        slot.release();
    }
    // SAFETY: null, or just opened.
    unsafe { opened(fresh) }
}

/// C17 7.21.5.1.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    let slot = Slot::closing(stream);
    // SAFETY: the caller vouches for the stream.
    let result = unsafe { next::fclose(stream) };
    if let Some(slot) = slot {
        slot.release();
    }
    result
}

/// C17 7.21.5.2.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fflush(stream: *mut FILE) -> c_int {
    if chosen() == Chosen::LateFlush && (stream.is_null() || buffers::has(stream)) {
        return 0;
    }
    // SAFETY: the caller vouches for the stream.
    unsafe { next::fflush(stream) }
}

/// Of `stdio_ext.h`: what the program believes to be flushed must not be thrown away.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn __fpurge(stream: *mut FILE) {
    // SAFETY: the caller vouches for the stream.
    unsafe {
        if chosen() == Chosen::LateFlush && buffers::has(stream) {
            next::fflush(stream);
        }
        next::fpurge(stream);
    }
}

/// C17 7.21.5.6.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setvbuf(
    stream: *mut FILE,
    buffer: *mut c_char,
    mode: c_int,
    size: size_t,
) -> c_int {
    if buffers::has(stream) {
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::setvbuf(stream, buffer, mode, size) }
}

/// C17 7.21.5.5.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setbuf(stream: *mut FILE, buffer: *mut c_char) {
    if !buffers::has(stream) {
        // SAFETY: the caller vouches for the arguments.
        unsafe { next::setbuf(stream, buffer) };
    }
}

/// BSD.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) {
    if !buffers::has(stream) {
        // SAFETY: the caller vouches for the arguments.
        unsafe { next::setbuffer(stream, buffer, size) };
    }
}

/// BSD.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn setlinebuf(stream: *mut FILE) {
    if !buffers::has(stream) {
        // SAFETY: the caller vouches for the stream.
        unsafe { next::setlinebuf(stream) };
    }
}
