//! Makes system calls directly, so that no other preloaded library intercepts them.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::ptr;

use equipoise_interpose::errno;

use crate::file::PAGE_BYTES;

/// Opens a file; `None` if the kernel refuses.
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
    // SAFETY: passes a number that only this library uses.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}

/// Reads into a buffer and returns the number of bytes; 0 at the end and on failure.
pub fn read(descriptor: c_int, buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer is valid for writing over its length.
    unsafe { read_to(descriptor, buffer.as_mut_ptr(), buffer.len()) }.unwrap_or(0)
}

/// Reads to an address and returns the number of bytes; 0 at the end of the file.
///
/// # Errors
/// The error number. `EFAULT` means a full disk, if the target is in a mapped file.
///
/// # Safety
/// The target is mapped for writing over that many bytes, and no other thread uses it meanwhile.
pub unsafe fn read_to(descriptor: c_int, target: *mut u8, bytes: usize) -> Result<usize, c_int> {
    // SAFETY: the caller vouches for the target.
    let result = unsafe { libc::syscall(libc::SYS_read, descriptor, target, bytes) };
    usize::try_from(result).map_err(|_| errno::get())
}

/// Lengthens a file, and returns whether it now has that many bytes. The kernel would end a process
/// that exceeds the limit `ulimit -f`, so this limit is checked first.
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

pub fn shorten(descriptor: c_int, bytes: usize) {
    // SAFETY: passes numbers only.
    unsafe { libc::syscall(libc::SYS_ftruncate, descriptor, bytes) };
}

/// Allocates disk space for an unused part of a mapped file; returns `false` if the disk is full.
///
/// If the program itself wrote to a page without disk space, SIGBUS would end the process. If the
/// kernel writes there for a system call, the call fails with `EFAULT`. So each page is passed to
/// `clock_gettime`, which writes a time, and which sandboxes permit. Then the time is set to zero.
///
/// # Safety
/// The part is mapped for writing, begins at a page, is all zero, and is not used yet.
pub unsafe fn allocate_disk_space(begin: *mut c_void, bytes: usize) -> bool {
    (0..bytes).step_by(PAGE_BYTES).all(|offset| {
        // SAFETY: the caller vouches for the part.
        let page = unsafe { begin.byte_add(offset) }.cast::<libc::timespec>();
        // SAFETY: the page is valid for writing, and the call fails if there is no disk space.
        let has_space =
            unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, page) } == 0;
        if has_space {
            // SAFETY: the page has disk space now, and this plain structure may be all zero.
            unsafe { page.write(std::mem::zeroed()) };
        }
        has_space
    })
}

/// Reserves zeroed private memory; null if there is none. Only used pages take memory.
pub fn reserve(bytes: usize) -> *mut c_void {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(bytes, flags, -1)
}

/// Maps a file as shared memory; null if the kernel refuses.
pub fn map_file(descriptor: c_int, bytes: usize) -> *mut c_void {
    map(bytes, libc::MAP_SHARED, descriptor)
}

fn map(bytes: usize, flags: c_int, descriptor: c_int) -> *mut c_void {
    // SAFETY: the kernel chooses an unused address.
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

/// Removes a mapping.
///
/// # Safety
/// Nothing uses the mapping any more.
pub unsafe fn unmap(address: *mut c_void, bytes: usize) {
    // SAFETY: the caller vouches for the mapping.
    unsafe { libc::syscall(libc::SYS_munmap, address, bytes) };
}

/// Advises the kernel about a mapping of this library, and returns whether it accepts.
pub fn advise(address: *mut c_void, bytes: usize, advice: c_int) -> bool {
    // SAFETY: the advice leaves the bytes unchanged in this process.
    unsafe { libc::syscall(libc::SYS_madvise, address, bytes, advice) == 0 }
}

pub fn process_id() -> u32 {
    // SAFETY: has no conditions.
    id(unsafe { libc::syscall(libc::SYS_getpid) })
}

pub fn parent_id() -> u32 {
    // SAFETY: has no conditions.
    id(unsafe { libc::syscall(libc::SYS_getppid) })
}

pub fn thread_id() -> u32 {
    // SAFETY: has no conditions.
    id(unsafe { libc::syscall(libc::SYS_gettid) })
}

/// Whether the thread of this process with this id has ended.
pub fn thread_has_ended(thread: u32) -> bool {
    // SAFETY: signal 0 is not sent.
    let refused = unsafe { libc::syscall(libc::SYS_tgkill, process_id(), thread, 0) != 0 };
    refused && errno::get() == libc::ESRCH
}

fn id(result: c_long) -> u32 {
    u32::try_from(result).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_disk_space_is_refused_without_a_signal() {
        // SAFETY: the name is NUL-terminated.
        let file = unsafe { libc::memfd_create(c"recording".as_ptr(), 0) };
        assert!(file >= 0 && lengthen(file, PAGE_BYTES));
        let memory = map_file(file, 3 * PAGE_BYTES);
        assert!(!memory.is_null());
        // SAFETY: mapped for writing and unused. Writing behind the end of the file raises SIGBUS,
        // as on a full disk.
        unsafe {
            assert!(allocate_disk_space(memory, PAGE_BYTES));
            assert_eq!(memory.cast::<[u64; 2]>().read(), [0, 0]);
            assert!(!allocate_disk_space(memory, 2 * PAGE_BYTES));
            unmap(memory, 3 * PAGE_BYTES);
        }
        close(file);
    }
}
