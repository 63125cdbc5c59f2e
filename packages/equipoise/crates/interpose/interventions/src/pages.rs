//! The interventions `keep_pages` and `huge_mappings`. With `keep_pages`, pages that the program
//! gives back are zeroed and kept. With `huge_mappings`, large mappings get huge pages, whatever
//! the program advises.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{off64_t, size_t};

use equipoise_interpose::errno;

use crate::intervention::{Intervention, current};
use crate::ranges::{Range, Ranges};

struct LockedRanges(UnsafeCell<Ranges>);

// SAFETY: used only while `LOCKED` is held.
unsafe impl Sync for LockedRanges {}

/// The memory that may be kept.
static RANGES: LockedRanges = LockedRanges(UnsafeCell::new(Ranges::new()));
static LOCKED: AtomicBool = AtomicBool::new(false);
/// Whether the lock could not be taken. The ranges may then be wrong, so they are not used any
/// more.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);
/// Size of a huge page on most machines.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Maximum number of attempts to take the lock. The owner may never release it: the owner may be a
/// thread that this forked child lacks, or code that a signal handler has interrupted.
const MAX_ATTEMPTS: usize = 10_000;

fn tracks_ranges() -> bool {
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
    let result = work(unsafe { &mut *RANGES.0.get() });
    LOCKED.store(false, Ordering::Release);
    Some(result)
}

fn page_bytes() -> usize {
    // SAFETY: has no conditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Returns the first address of some memory and the end of its last page.
fn page_range(address: *mut c_void, bytes: size_t) -> (usize, usize) {
    let start = address.addr();
    let end = start.saturating_add(bytes);
    let end_of_page = end.checked_next_multiple_of(page_bytes());
    (start, end_of_page.unwrap_or(end))
}

fn is_writable(protection: c_int) -> bool {
    protection & libc::PROT_WRITE != 0 && protection & libc::PROT_READ != 0
}

fn forget(address: *mut c_void, bytes: size_t) {
    if tracks_ranges() {
        let (start, end) = page_range(address, bytes);
        with_ranges(|ranges| ranges.remove(start, end));
    }
}

equipoise_interpose::hooks! {
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
        if is_private && bytes >= HUGE_PAGE_BYTES && current() == Intervention::HugeMappings {
            // The mapping is new, and the advice leaves its bytes as they are.
            errno::preserved(|| next::madvise(mapped, bytes, libc::MADV_HUGEPAGE));
        }
        if is_private && tracks_ranges() {
            let (start, end) = page_range(mapped, bytes);
            let writable = is_writable(protection);
            with_ranges(|ranges| ranges.add(Range { start, end, writable }));
        } else {
            forget(mapped, bytes);
        }
        mapped
    }

    fn munmap(address: *mut c_void, bytes: size_t) -> c_int {
        forget(address, bytes);
        next::munmap(address, bytes)
    }

    /// The last argument exists only with some flags; it is passed on unchanged.
    fn mremap(
        address: *mut c_void, bytes: size_t, new_bytes: size_t, flags: c_int, to: *mut c_void,
    ) -> *mut c_void {
        forget(address, bytes);
        if flags & libc::MREMAP_FIXED != 0 {
            forget(to, new_bytes);
        }
        next::mremap(address, bytes, new_bytes, flags, to)
    }

    fn mprotect(address: *mut c_void, bytes: size_t, protection: c_int) -> c_int {
        if tracks_ranges() {
            let (start, end) = page_range(address, bytes);
            with_ranges(|ranges| ranges.protect(start, end, is_writable(protection)));
        }
        next::mprotect(address, bytes, protection)
    }

    /// With a key, a program may forbid writing without a system call. So memory with a key is not
    /// kept.
    fn pkey_mprotect(
        address: *mut c_void, bytes: size_t, protection: c_int, key: c_int,
    ) -> c_int {
        forget(address, bytes);
        next::pkey_mprotect(address, bytes, protection, key)
    }

    fn madvise(address: *mut c_void, bytes: size_t, advice: c_int) -> c_int {
        if matches!(advice, libc::MADV_DONTNEED | libc::MADV_FREE) && can_keep(address, bytes) {
            // After MADV_FREE, a page may keep its content, so nothing needs to be done.
            return if advice == libc::MADV_FREE { 0 } else { zero(address, bytes) };
        }
        if advice == libc::MADV_NOHUGEPAGE && current() == Intervention::HugeMappings {
            return 0;
        }
        next::madvise(address, bytes, advice)
    }
}

equipoise_interpose::exports! {
    /// The same function as `mmap` on 64-bit machines.
    fn mmap64(
        address: *mut c_void, bytes: size_t, protection: c_int, flags: c_int, descriptor: c_int,
        offset: off64_t,
    ) -> *mut c_void {
        mmap(address, bytes, protection, flags, descriptor, offset)
    }
}

fn can_keep(address: *mut c_void, bytes: size_t) -> bool {
    let (start, end) = page_range(address, bytes);
    tracks_ranges()
        && start.is_multiple_of(page_bytes())
        && with_ranges(|ranges| ranges.covers(start, end, Range::is_writable)) == Some(true)
        && !GIVEN_UP.load(Ordering::Acquire)
}

/// Maximum number of pages for one call of mincore.
const MAX_PAGES_PER_CALL: usize = 1024;

/// Writes zeroes to the pages that are in memory, and lets the kernel drop all other pages.
///
/// # Safety
/// The pages are private, without a file, and may be written to.
unsafe fn zero(address: *mut c_void, bytes: size_t) -> c_int {
    let page_bytes = page_bytes();
    let (start, end) = page_range(address, bytes);
    let mut in_memory = [0_u8; MAX_PAGES_PER_CALL];
    let mut offset = 0;
    while start + offset < end {
        let count = ((end - start - offset) / page_bytes).min(MAX_PAGES_PER_CALL);
        // SAFETY: the caller vouches for the pages, and the list is long enough.
        unsafe {
            let from = address.byte_add(offset);
            if libc::mincore(from, count * page_bytes, in_memory.as_mut_ptr()) != 0 {
                return next::madvise(from, end - start - offset, libc::MADV_DONTNEED);
            }
            // The lowest bit of each byte says whether the page is in memory (mincore(2)).
            for pages in in_memory[..count].chunk_by(|left, right| left & 1 == right & 1) {
                let first_page = address.byte_add(offset);
                let length = pages.len() * page_bytes;
                if pages[0] & 1 == 1 {
                    ptr::write_bytes(first_page.cast::<u8>(), 0, length);
                } else if next::madvise(first_page, length, libc::MADV_DONTNEED) != 0 {
                    return -1;
                }
                offset += length;
            }
        }
    }
    0
}
