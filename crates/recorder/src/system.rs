//! Calls of the kernel that no other preloaded library stands between, and that leave `errno`.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::ptr;

/// Keeps `errno` as it is while `work` runs: the program must not see what recording does.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the C library gives every thread a valid location.
    let before = unsafe { *libc::__errno_location() };
    let result = work();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = before };
    result
}

/// A descriptor, or `None`.
pub fn open(path: &CStr, flags: c_int) -> Option<c_int> {
    const MODE: c_int = 0o600;
    // SAFETY: the path is NUL-terminated.
    let result = unsafe {
        libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags | libc::O_CLOEXEC,
            MODE,
        )
    };
    c_int::try_from(result).ok().filter(|number| *number >= 0)
}

pub fn close(descriptor: c_int) {
    // SAFETY: passes a number that only this library knows.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// How many bytes were read; 0 at the end and on failure.
pub fn read(descriptor: c_int, buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer is valid for writing over its length.
    let result = unsafe {
        libc::syscall(
            libc::SYS_read,
            descriptor,
            buffer.as_mut_ptr(),
            buffer.len(),
        )
    };
    usize::try_from(result).unwrap_or(0)
}

/// Whether the file now has that many bytes; a smaller limit (`ulimit -f`) would end the process.
pub fn lengthen(descriptor: c_int, bytes: usize) -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is valid for writing; the rest are numbers.
    unsafe {
        libc::syscall(
            libc::SYS_prlimit64,
            0,
            c_long::from(libc::RLIMIT_FSIZE),
            ptr::null::<libc::rlimit>(),
            &raw mut limit,
        ) == 0
            && limit.rlim_cur >= bytes as u64
            && libc::syscall(libc::SYS_ftruncate, descriptor, bytes) == 0
    }
}

/// Zeroed memory of this process alone, touched only where it is used; null if there is none.
pub fn reserve(bytes: usize) -> *mut c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(bytes, flags, -1)
}

/// The file's bytes as memory that survives this process; null if that cannot be had.
pub fn map_file(descriptor: c_int, bytes: usize) -> *mut c_void {
    map(bytes, libc::MAP_SHARED, descriptor)
}

fn map(bytes: usize, flags: c_int, descriptor: c_int) -> *mut c_void {
    // SAFETY: the kernel chooses a place that nobody uses.
    let address = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            ptr::null_mut::<c_void>(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            descriptor,
            0_usize,
        )
    };
    if address == -1 {
        ptr::null_mut()
    } else {
        usize::try_from(address.cast_unsigned())
            .map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
    }
}

/// Gives a mapping back.
///
/// # Safety
/// Nothing uses it any more.
pub unsafe fn unmap(address: *mut c_void, bytes: usize) {
    // SAFETY: the caller vouches for it.
    unsafe { libc::syscall(libc::SYS_munmap, address, bytes) };
}

/// Whether the kernel took the advice about a mapping of ours.
pub fn advise(address: *mut c_void, bytes: usize, advice: c_int) -> bool {
    // SAFETY: `advice` keeps the bytes as they are, in this process.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes, advice) == 0 }
}

pub fn process() -> u32 {
    // SAFETY: has no conditions.
    number(unsafe { libc::syscall(libc::SYS_getpid) })
}

pub fn parent() -> u32 {
    // SAFETY: has no conditions.
    number(unsafe { libc::syscall(libc::SYS_getppid) })
}

pub fn thread() -> u32 {
    // SAFETY: has no conditions.
    number(unsafe { libc::syscall(libc::SYS_gettid) })
}

/// Whether a thread of this process has ended.
pub fn has_ended(thread: u32) -> bool {
    // SAFETY: signal 0 is not sent.
    unsafe {
        libc::syscall(libc::SYS_tgkill, process(), thread, 0) != 0
            && *libc::__errno_location() == libc::ESRCH
    }
}

fn number(result: c_long) -> u32 {
    u32::try_from(result).unwrap_or(0)
}
