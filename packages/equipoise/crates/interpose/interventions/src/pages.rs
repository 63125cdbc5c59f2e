//! `keep_pages`: pages that the program gives back are zeroed and kept.
//! `huge_mappings`: large mappings get huge pages, whatever the program advises.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{off64_t, size_t};

use equipoise_interpose::errno;

use crate::intervention::{Intervention, current};
use crate::ranges::{Range, Ranges};

struct Watched(UnsafeCell<Ranges>);

// SAFETY: reached under `LOCKED` alone.
unsafe impl Sync for Watched {}

static WATCHED: Watched = Watched(UnsafeCell::new(Ranges::new()));
static LOCKED: AtomicBool = AtomicBool::new(false);
/// Whether the lock could not be taken: the known ranges may be wrong, and are not used any more.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);
/// Smallest mapping that has room for a huge page on most machines.
const HUGE_BYTES: usize = 2 << 20;
/// Number of attempts to take the lock. Its owner may be a thread that does not exist in this child,
/// or the code below a signal handler.
const MAX_ATTEMPTS: usize = 10_000;

fn watching() -> bool {
    current() == Intervention::KeepPages && !GIVEN_UP.load(Ordering::Acquire)
}

fn with_ranges<T>(work: impl FnOnce(&mut Ranges) -> T) -> Option<T> {
    let mut attempts = 0;
    while LOCKED.swap(true, Ordering::Acquire) {
        attempts += 1;
        if attempts == MAX_ATTEMPTS {
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

/// Returns the first address of a part of memory and the end of its last page.
fn pages(address: *mut c_void, bytes: size_t) -> (usize, usize) {
    let start = address.addr();
    let end = start.saturating_add(bytes);
    let end_of_page = end.checked_next_multiple_of(page_bytes());
    (start, end_of_page.unwrap_or(end))
}

fn is_writable(protection: c_int) -> bool {
    protection & libc::PROT_WRITE != 0 && protection & libc::PROT_READ != 0
}

fn forget(address: *mut c_void, bytes: size_t) {
    if watching() {
        let (start, end) = pages(address, bytes);
        with_ranges(|ranges| ranges.remove(start, end));
    }
}

equipoise_interpose::hooks! {
    /// POSIX.
    fn mmap(
        address: *mut c_void, bytes: size_t, protection: c_int, flags: c_int, descriptor: c_int,
        offset: off64_t,
    ) -> *mut c_void {
        if flags & libc::MAP_FIXED != 0 {
            forget(address, bytes);
        }
        let mapped = next::mmap(address, bytes, protection, flags, descriptor, offset);
        if mapped == libc::MAP_FAILED {
            return mapped;
        }
        let is_private = flags & libc::MAP_TYPE == libc::MAP_PRIVATE
            && flags & libc::MAP_ANONYMOUS != 0
            && flags & libc::MAP_HUGETLB == 0;
        if is_private && bytes >= HUGE_BYTES && current() == Intervention::HugeMappings {
            // The mapping is new, and the advice leaves its bytes as they are.
            errno::preserved(|| next::madvise(mapped, bytes, libc::MADV_HUGEPAGE));
        }
        if is_private && watching() {
            let (start, end) = pages(mapped, bytes);
            let writable = is_writable(protection);
            with_ranges(|ranges| ranges.add(Range { start, end, writable }));
        } else {
            forget(mapped, bytes);
        }
        mapped
    }

    /// POSIX.
    fn munmap(address: *mut c_void, bytes: size_t) -> c_int {
        forget(address, bytes);
        next::munmap(address, bytes)
    }

    /// Linux. The last argument is present for some flags only; it is passed on as it comes.
    fn mremap(
        address: *mut c_void, bytes: size_t, new_bytes: size_t, flags: c_int, to: *mut c_void,
    ) -> *mut c_void {
        forget(address, bytes);
        if flags & libc::MREMAP_FIXED != 0 {
            forget(to, new_bytes);
        }
        next::mremap(address, bytes, new_bytes, flags, to)
    }

    /// POSIX.
    fn mprotect(address: *mut c_void, bytes: size_t, protection: c_int) -> c_int {
        if watching() {
            let (start, end) = pages(address, bytes);
            with_ranges(|ranges| ranges.protect(start, end, is_writable(protection)));
        }
        next::mprotect(address, bytes, protection)
    }

    /// Linux. A key allows and forbids writing without a call, so such memory is forgotten.
    fn pkey_mprotect(
        address: *mut c_void, bytes: size_t, protection: c_int, key: c_int,
    ) -> c_int {
        forget(address, bytes);
        next::pkey_mprotect(address, bytes, protection, key)
    }

    /// Linux.
    fn madvise(address: *mut c_void, bytes: size_t, advice: c_int) -> c_int {
        if matches!(advice, libc::MADV_DONTNEED | libc::MADV_FREE) && may_keep(address, bytes) {
            return if advice == libc::MADV_FREE { 0 } else { zero(address, bytes) };
        }
        if advice == libc::MADV_NOHUGEPAGE && current() == Intervention::HugeMappings {
            return 0;
        }
        next::madvise(address, bytes, advice)
    }
}

equipoise_interpose::exports! {
    /// The same function on machines of 64 bits.
    fn mmap64(
        address: *mut c_void, bytes: size_t, protection: c_int, flags: c_int, descriptor: c_int,
        offset: off64_t,
    ) -> *mut c_void {
        mmap(address, bytes, protection, flags, descriptor, offset)
    }
}

fn may_keep(address: *mut c_void, bytes: size_t) -> bool {
    let (start, end) = pages(address, bytes);
    watching()
        && start.is_multiple_of(page_bytes())
        && with_ranges(|ranges| ranges.covers(start, end, true)) == Some(true)
        && !GIVEN_UP.load(Ordering::Acquire)
}

/// Number of pages that the kernel is asked about at once.
const AT_ONCE: usize = 1024;

/// Writes zeroes to the pages in memory; the kernel drops the others, swapped ones included.
///
/// # Safety
/// The pages are private, without a file, and may be written to.
unsafe fn zero(address: *mut c_void, bytes: size_t) -> c_int {
    let page = page_bytes();
    let (start, end) = pages(address, bytes);
    let mut present = [0_u8; AT_ONCE];
    let mut at = 0;
    while start + at < end {
        let count = ((end - start - at) / page).min(AT_ONCE);
        // SAFETY: the caller vouches for the pages, and the list is long enough.
        unsafe {
            let from = address.byte_add(at);
            if libc::mincore(from, count * page, present.as_mut_ptr()) != 0 {
                return next::madvise(from, end - start - at, libc::MADV_DONTNEED);
            }
            for run in present[..count].chunk_by(|left, right| left & 1 == right & 1) {
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
