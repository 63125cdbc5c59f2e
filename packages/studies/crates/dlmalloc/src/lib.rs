//! Doug Lea's malloc as a library for `LD_PRELOAD`.
//!
//! The exported functions are the set that the GNU C library asks of a replacement (its manual,
//! "Replacing malloc"), with the errors that POSIX.1-2017 and C17 name.

// In a test program these names would replace the allocator of the test harness itself.
#![cfg_attr(test, allow(dead_code))]
// Only C calls these.
#![allow(clippy::must_use_candidate)]

mod heap;
mod lock;
mod mapped;

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use equipoise_interpose::errno;

use crate::heap::HEAP;

/// Larger alignments have no use, and near the top of the address space sizes would overflow.
const LARGEST_ALIGNMENT: usize = 1 << 40;
const PAGE: usize = 4096;

/// C17 7.22.3.4: `size` bytes, or null with `ENOMEM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    or_out_of_memory(HEAP.allocate(size))
}

/// C17 7.22.3.2: `count` times `size` zero bytes, or null with `ENOMEM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    or_out_of_memory(match count.checked_mul(size) {
        Some(bytes) => HEAP.allocate_zeroed(bytes),
        None => null_mut(),
    })
}

/// C17 7.22.3.5, with the GNU meaning of size 0: the block is freed and null is returned.
///
/// # Safety
/// `block` is null or came from a function of this library and has not been freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if !block.is_null() && size == 0 {
        // SAFETY: the caller vouches for the block.
        unsafe { free(block) };
        return null_mut();
    }
    // SAFETY: the caller vouches for the block.
    or_out_of_memory(unsafe { HEAP.reallocate(block.cast(), size) })
}

/// C17 7.22.3.3; leaves `errno` as it was, which POSIX.1-2024 requires.
///
/// # Safety
/// `block` is null or came from a function of this library and has not been freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller vouches for the block.
    errno::preserved(|| unsafe { HEAP.release(block.cast()) });
}

/// C17 7.22.3.1: as `memalign`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    memalign(alignment, size)
}

/// `size` bytes at a multiple of `alignment`, a power of two; null with `EINVAL` or `ENOMEM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        errno::set(libc::EINVAL);
        return null_mut();
    }
    or_out_of_memory(aligned(alignment, size))
}

/// POSIX.1-2017: returns 0, `EINVAL` or `ENOMEM`, and leaves `errno` as it was.
///
/// # Safety
/// `result` is valid for writing a pointer.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_memalign(
    result: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let block = errno::preserved(|| aligned(alignment, size));
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller vouches for `result`.
    unsafe { result.write(block.cast()) };
    0
}

/// `size` bytes at a multiple of the page size, or null with `ENOMEM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(PAGE, size)
}

/// Returns whole pages for `size` bytes, or null with `ENOMEM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        Some(bytes) => memalign(PAGE, bytes.max(PAGE)),
        None => or_out_of_memory(null_mut()),
    }
}

/// Returns the bytes of the block that its owner may use: at least the requested size.
///
/// # Safety
/// `block` is null or came from a function of this library and has not been freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller vouches for the block.
    unsafe { HEAP.usable_size(block.cast()) }
}

fn aligned(alignment: usize, size: usize) -> *mut u8 {
    if alignment > LARGEST_ALIGNMENT {
        return null_mut();
    }
    HEAP.allocate_aligned(alignment, size)
}

fn or_out_of_memory(block: *mut u8) -> *mut c_void {
    if block.is_null() {
        errno::set(libc::ENOMEM);
    }
    block.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usable_size_is_at_least_the_requested_one_and_all_of_it_is_ours() {
        for size in [0, 1, 8, 24, 25, 100, 4096, 35_840, 300_000, 5_000_000] {
            let block = malloc(size);
            assert_eq!(block as usize % 16, 0);
            // SAFETY: the block is live, and its usable size is what the library promises.
            unsafe {
                let usable = malloc_usable_size(block);
                let is_mapped = size >= mapped::THRESHOLD;
                let slack = if is_mapped { 2 * PAGE } else { 64 };
                assert!(size <= usable && usable <= size + slack, "{size}: {usable}");
                block.cast::<u8>().write_bytes(0xA5, usable);
                free(block);
            }
        }
    }

    #[test]
    fn a_grown_block_keeps_its_bytes() {
        // SAFETY: each block is used only while it is live.
        unsafe {
            let mut block = malloc(10).cast::<u8>();
            for index in 0..10_u8 {
                block.add(usize::from(index)).write(index);
            }
            for size in [
                100, 40_000, 1_000_000, 5_000_000, 300_000, 300_001, 30_000, 10,
            ] {
                block = realloc(block.cast(), size).cast();
                for index in 0..10_u8 {
                    assert_eq!(block.add(usize::from(index)).read(), index);
                }
            }
            assert!(realloc(block.cast(), 0).is_null());
        }
    }

    #[test]
    fn memory_from_calloc_is_zero_even_where_it_was_used_before() {
        // SAFETY: each block is used only while it is live, within its size.
        unsafe {
            let used = malloc(5000);
            used.cast::<u8>().write_bytes(0xFF, 5000);
            free(used);
            let block = calloc(50, 100).cast::<u8>();
            assert!((0..5000).all(|index| block.add(index).read() == 0));
            free(block.cast());
        }
    }

    #[test]
    fn alignments_are_kept() {
        for power in 0..22 {
            let block = memalign(1 << power, 100);
            assert_eq!(block as usize % (1 << power), 0);
            // SAFETY: the block is live.
            unsafe { free(block) };
        }
        let pages = pvalloc(1);
        assert_eq!(pages as usize % 4096, 0);
        // SAFETY: the block is live.
        unsafe {
            assert!(malloc_usable_size(pages) >= 4096);
            free(pages);
        }
    }

    #[test]
    fn a_block_that_cannot_be_made_is_null_with_its_errno() {
        errno::set(0);
        assert!(malloc(usize::MAX).is_null());
        assert_eq!(errno::get(), libc::ENOMEM);
        errno::set(0);
        assert!(calloc(usize::MAX, 2).is_null());
        assert_eq!(errno::get(), libc::ENOMEM);
        errno::set(0);
        assert!(memalign(24, 8).is_null());
        assert_eq!(errno::get(), libc::EINVAL);
        errno::set(0);
        let mut block = null_mut();
        // SAFETY: `block` is a valid place for a pointer.
        unsafe {
            assert_eq!(posix_memalign(&raw mut block, 2, 8), libc::EINVAL);
            assert_eq!(posix_memalign(&raw mut block, 1 << 50, 8), libc::ENOMEM);
        }
        assert!(block.is_null());
        assert_eq!(errno::get(), 0);
    }

    #[test]
    fn large_blocks_are_mappings_of_their_own() {
        let large = |size: usize| {
            let block = malloc(size).cast::<u8>();
            // SAFETY: the block is live, and the word before it is its header.
            unsafe {
                let head = block.sub(8).cast::<[u8; 8]>().read();
                free(block.cast());
                mapped::is_mapped(usize::from_ne_bytes(head))
            }
        };
        assert!(!large(35_840));
        assert!(!large(mapped::THRESHOLD - 1));
        assert!(large(mapped::THRESHOLD));
    }

    #[test]
    fn large_memory_from_calloc_is_zero_and_what_cannot_be_had_is_null() {
        // SAFETY: each block is used only while it is live, within its size.
        unsafe {
            let block = calloc(1000, 1000).cast::<u8>();
            assert!((0..1_000_000).all(|index| block.add(index).read() == 0));
            assert!(realloc(block.cast(), usize::MAX - PAGE).is_null());
            assert_eq!(block.read(), 0, "the block is as it was");
            free(block.cast());
        }
    }

    #[test]
    fn threads_share_the_heap_without_harm() {
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                scope.spawn(move || {
                    for round in 0..2000_usize {
                        let size = 1 + round % 700;
                        let block = malloc(size).cast::<u8>();
                        // SAFETY: the block is live and `size` bytes long.
                        unsafe {
                            block.write_bytes(thread, size);
                            std::thread::yield_now();
                            assert!((0..size).all(|index| block.add(index).read() == thread));
                            free(block.cast());
                        }
                    }
                });
            }
        });
    }
}
