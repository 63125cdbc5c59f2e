//! Pages that the program says it needs no more are zeroed and kept, not given back; or large
//! mappings get huge pages, whatever the program says of them.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{off64_t, size_t};

use crate::chosen::{Chosen, chosen};
use crate::ranges::{Range, Ranges};
use crate::{errno, next};

struct Watched(UnsafeCell<Ranges>);

// SAFETY: reached under `LOCKED` alone.
unsafe impl Sync for Watched {}

static WATCHED: Watched = Watched(UnsafeCell::new(Ranges::new()));
static LOCKED: AtomicBool = AtomicBool::new(false);
/// The lock could not be had: what is known may be wrong, and is asked no more.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);
/// What is smaller has no room for one, on most machines.
const HUGE_BYTES: usize = 2 << 20;
/// A thread that holds the lock was forked away, or stands below us in a signal handler.
const PATIENCE: usize = 10_000;

fn watching() -> bool {
    chosen() == Chosen::KeepPages && !GIVEN_UP.load(Ordering::Acquire)
}

fn with_ranges<T>(work: impl FnOnce(&mut Ranges) -> T) -> Option<T> {
    let mut left = PATIENCE;
    while LOCKED.swap(true, Ordering::Acquire) {
        left -= 1;
        if left == 0 {
            GIVEN_UP.store(true, Ordering::Release);
            return None;
        }
        // SAFETY: has no conditions.
        unsafe { libc::sched_yield() };
    }
    // SAFETY: the lock is held.
    let result = work(unsafe { &mut *WATCHED.0.get() });
    LOCKED.store(false, Ordering::Release);
    Some(result)
}

fn page_bytes() -> usize {
    // SAFETY: has no conditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The addresses of whole pages.
fn pages(address: *mut c_void, bytes: size_t) -> (usize, usize) {
    let start = address.addr();
    let end = start.saturating_add(bytes);
    (
        start,
        end.checked_next_multiple_of(page_bytes()).unwrap_or(end),
    )
}

fn is_writable(protection: c_int) -> bool {
    protection & libc::PROT_WRITE != 0 && protection & libc::PROT_READ != 0
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off64_t,
) -> *mut c_void {
    let watched = watching();
    if watched && flags & libc::MAP_FIXED != 0 {
        let (start, end) = pages(address, bytes);
        with_ranges(|ranges| ranges.remove(start, end));
    }
    // SAFETY: the caller vouches for the arguments.
    let mapped = unsafe { next::mmap(address, bytes, protection, flags, descriptor, offset) };
    if mapped == libc::MAP_FAILED {
        return mapped;
    }
    let private = flags & libc::MAP_TYPE == libc::MAP_PRIVATE
        && flags & libc::MAP_ANONYMOUS != 0
        && flags & libc::MAP_HUGETLB == 0;
    if private && bytes >= HUGE_BYTES && chosen() == Chosen::HugeMappings {
        let kept = errno::Kept::now();
        // SAFETY: the kernel has just made this mapping; its bytes stay what they are.
        unsafe { next::madvise(mapped, bytes, libc::MADV_HUGEPAGE) };
        kept.put_back();
    }
    if watched {
        let (start, end) = pages(mapped, bytes);
        with_ranges(|ranges| {
            if private {
                ranges.add(Range {
                    start,
                    end,
                    writable: is_writable(protection),
                });
            } else {
                ranges.remove(start, end);
            }
        });
    }
    mapped
}

/// With 64 bits the same.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: size_t,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: off64_t,
) -> *mut c_void {
    // SAFETY: the caller vouches for the arguments.
    unsafe { mmap(address, bytes, protection, flags, descriptor, offset) }
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn munmap(address: *mut c_void, bytes: size_t) -> c_int {
    forget(address, bytes);
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::munmap(address, bytes) }
}

/// Linux. Its last argument is there for some flags only, and stands in the same register.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mremap(
    address: *mut c_void,
    bytes: size_t,
    fresh_bytes: size_t,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    forget(address, bytes);
    if flags & libc::MREMAP_FIXED != 0 {
        forget(to, fresh_bytes);
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::mremap(address, bytes, fresh_bytes, flags, to) }
}

fn forget(address: *mut c_void, bytes: size_t) {
    if watching() {
        let (start, end) = pages(address, bytes);
        with_ranges(|ranges| ranges.remove(start, end));
    }
}

/// POSIX.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mprotect(address: *mut c_void, bytes: size_t, protection: c_int) -> c_int {
    if watching() {
        let (start, end) = pages(address, bytes);
        with_ranges(|ranges| ranges.protect(start, end, is_writable(protection)));
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::mprotect(address, bytes, protection) }
}

/// Linux; whether a key allows writing changes without a call, so that such memory is not known.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn pkey_mprotect(
    address: *mut c_void,
    bytes: size_t,
    protection: c_int,
    key: c_int,
) -> c_int {
    forget(address, bytes);
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::pkey_mprotect(address, bytes, protection, key) }
}

/// Linux.
///
/// # Safety
/// As it asks for.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn madvise(address: *mut c_void, bytes: size_t, advice: c_int) -> c_int {
    if matches!(advice, libc::MADV_DONTNEED | libc::MADV_FREE) && may_keep(address, bytes) {
        if advice == libc::MADV_FREE {
            return 0;
        }
        // SAFETY: it is private memory without a file that may be written to.
        return unsafe { zero(address, bytes) };
    }
    if advice == libc::MADV_NOHUGEPAGE && chosen() == Chosen::HugeMappings {
        return 0;
    }
    // SAFETY: the caller vouches for the arguments.
    unsafe { next::madvise(address, bytes, advice) }
}

fn may_keep(address: *mut c_void, bytes: size_t) -> bool {
    let (start, end) = pages(address, bytes);
    watching()
        && start.is_multiple_of(page_bytes())
        && with_ranges(|ranges| ranges.covers(start, end, true)) == Some(true)
        && !GIVEN_UP.load(Ordering::Acquire)
}

/// How many pages are asked about at once.
const AT_ONCE: usize = 1024;

/// Writes zeroes to the pages that are there; what is not there, or swapped out, the kernel drops.
///
/// # Safety
/// The pages are private, without a file, and may be written to.
unsafe fn zero(address: *mut c_void, bytes: size_t) -> c_int {
    let page = page_bytes();
    let (start, end) = pages(address, bytes);
    let mut there = [0_u8; AT_ONCE];
    let mut at = 0;
    while start + at < end {
        let count = ((end - start - at) / page).min(AT_ONCE);
        // SAFETY: the caller vouches for the pages, and the list is long enough.
        unsafe {
            let from = address.byte_add(at);
            if libc::mincore(from, count * page, there.as_mut_ptr()) != 0 {
                return next::madvise(from, end - start - at, libc::MADV_DONTNEED);
            }
            for run in there[..count].chunk_by(|one, other| one & 1 == other & 1) {
                let place = address.byte_add(at);
                let length = run.len() * page;
                if run[0] & 1 == 1 {
                    ptr::write_bytes(place.cast::<u8>(), 0, length);
                } else if next::madvise(place, length, libc::MADV_DONTNEED) != 0 {
                    return -1;
                }
                at += length;
            }
        }
    }
    0
}
