//! The interventions `large_buffers` and `late_flush`. Streams of the C library get large buffers,
//! whatever size the program requests. With `late_flush`, streams also ignore flushes.

use std::ffi::{c_char, c_int};

use libc::{FILE, size_t};

use crate::buffers::{self, Slot};
use crate::intervention::{Intervention, current};

unsafe extern "C" {
    static stdout: *mut FILE;
    static stderr: *mut FILE;
    /// Number of bytes in the buffer that are not written yet (`stdio_ext.h`).
    fn __fpending(stream: *mut FILE) -> size_t;
}

/// Gives standard output and standard error large buffers, before the program begins.
pub fn enlarge_standard_streams() {
    // SAFETY: both are open streams before main.
    unsafe {
        enlarge(stdout);
        enlarge(stderr);
    }
}

/// Writes the pending output in the large buffers of one descriptor (`None`: of all).
pub fn write_pending(descriptor: Option<c_int>) {
    buffers::for_each_stream(|stream| {
        // SAFETY: a stream with a large buffer is open.
        unsafe {
            let is_selected = descriptor.is_none_or(|number| libc::fileno(stream) == number);
            if __fpending(stream) > 0 && is_selected {
                next::fflush(stream);
            }
        }
    });
}

/// Gives a stream a large buffer, if one is free.
///
/// # Safety
/// The stream is open, and nothing was read or written since it was opened.
unsafe fn enlarge(stream: *mut FILE) {
    let Some(slot) = Slot::claim(stream) else {
        return;
    };
    // SAFETY: the caller vouches for the stream. Only this stream uses the buffer.
    let status =
        unsafe { next::setvbuf(stream, slot.buffer(), libc::_IOFBF, buffers::BUFFER_BYTES) };
    if status != 0 {
        slot.release();
    }
}

/// Enlarges the buffer of a stream that was just opened, and returns the stream.
///
/// # Safety
/// The stream is null, or as `enlarge` requires.
unsafe fn enlarge_opened(stream: *mut FILE) -> *mut FILE {
    if !stream.is_null() && current().has_large_buffers() {
        // SAFETY: the caller vouches for the stream.
        unsafe { enlarge(stream) };
    }
    stream
}

/// Closes a stream by `close`, and frees its slot. `close` may open the stream again.
fn close_and_release<T>(stream: *mut FILE, close: impl FnOnce() -> T) -> T {
    let slot = Slot::take_from(stream);
    let result = close();
    if let Some(slot) = slot {
        slot.release();
    }
    result
}

equipoise_interpose::hooks! {
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
        enlarge_opened(next::fopen(path, mode))
    }

    fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
        enlarge_opened(next::fopen64(path, mode))
    }

    fn fdopen(descriptor: c_int, mode: *const c_char) -> *mut FILE {
        enlarge_opened(next::fdopen(descriptor, mode))
    }

    fn freopen(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
        enlarge_opened(close_and_release(stream, || next::freopen(path, mode, stream)))
    }

    fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE {
        enlarge_opened(close_and_release(stream, || next::freopen64(path, mode, stream)))
    }

    fn fclose(stream: *mut FILE) -> c_int {
        close_and_release(stream, || next::fclose(stream))
    }

    fn fflush(stream: *mut FILE) -> c_int {
        let is_late = current() == Intervention::LateFlush;
        if is_late && (stream.is_null() || buffers::has_buffer(stream)) {
            return 0;
        }
        next::fflush(stream)
    }

    /// The program assumes that its earlier output was flushed, so this output is written.
    fn __fpurge(stream: *mut FILE) {
        if current() == Intervention::LateFlush && buffers::has_buffer(stream) {
            next::fflush(stream);
        }
        next::__fpurge(stream);
    }

    fn setvbuf(stream: *mut FILE, buffer: *mut c_char, mode: c_int, size: size_t) -> c_int {
        if buffers::has_buffer(stream) {
            return 0;
        }
        next::setvbuf(stream, buffer, mode, size)
    }

    fn setbuf(stream: *mut FILE, buffer: *mut c_char) {
        if !buffers::has_buffer(stream) {
            next::setbuf(stream, buffer);
        }
    }

    fn setbuffer(stream: *mut FILE, buffer: *mut c_char, size: size_t) {
        if !buffers::has_buffer(stream) {
            next::setbuffer(stream, buffer, size);
        }
    }

    fn setlinebuf(stream: *mut FILE) {
        if !buffers::has_buffer(stream) {
            next::setlinebuf(stream);
        }
    }
}
