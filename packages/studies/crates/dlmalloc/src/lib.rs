//! Doug Lea's malloc as a library for `LD_PRELOAD`.
//!
//! The exported functions are malloc and its relatives (GNU C library manual, "Replacing malloc"),
//! with the errors of POSIX.1-2017 and C17.

// A test program does not export the functions, so nothing calls them there.
#![cfg_attr(test, allow(dead_code))]
// Only C calls the exported functions.
#![allow(clippy::must_use_candidate)]

mod heap;
mod lock;
mod mapped;

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use equipoise_interpose::errno;

use crate::heap::HEAP;

/// Maximum alignment, in bytes. With a much larger alignment, sizes would overflow.
const MAX_ALIGNMENT: usize = 1 << 40;
/// Size of a page of memory, in bytes.
const PAGE: usize = 4096;

/// C17 7.22.3.4: allocates `size` bytes; null with `ENOMEM` if there is no memory.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    block_or_enomem(HEAP.allocate(size))
}

/// C17 7.22.3.2: allocates `count` times `size` zero bytes; null with `ENOMEM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    block_or_enomem(match count.checked_mul(size) {
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
    block_or_enomem(unsafe { HEAP.reallocate(block.cast(), size) })
}

/// C17 7.22.3.3: frees a block. `errno` stays unchanged, as POSIX.1-2024 requires.
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

/// C17 7.22.3.1: the same function as `memalign`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    memalign(alignment, size)
}

/// Allocates `size` bytes at a multiple of `alignment`, a power of two. On failure, returns null
/// and sets `errno`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        errno::set(libc::EINVAL);
        return null_mut();
    }
    block_or_enomem(allocate_aligned(alignment, size))
}

/// POSIX.1-2017: returns 0, `EINVAL` or `ENOMEM`; `errno` stays unchanged.
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
    let block = errno::preserved(|| allocate_aligned(alignment, size));
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller vouches for `result`.
    unsafe { result.write(block.cast()) };
    0
}

/// Allocates `size` bytes at a multiple of the page size; null with `ENOMEM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    memalign(PAGE, size)
}

/// Allocates whole pages for `size` bytes; null with `ENOMEM`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        Some(bytes) => memalign(PAGE, bytes.max(PAGE)),
        None => block_or_enomem(null_mut()),
    }
}

/// Returns the number of bytes that the owner of a block may use: at least the requested size.
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

fn allocate_aligned(alignment: usize, size: usize) -> *mut u8 {
    if alignment > MAX_ALIGNMENT {
        return null_mut();
    }
    HEAP.allocate_aligned(alignment, size)
}

fn block_or_enomem(block: *mut u8) -> *mut c_void {
    if block.is_null() {
        errno::set(libc::ENOMEM);
    }
    block.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usable_size_is_at_least_the_requested_size_and_can_be_written() {
        for size in [0, 1, 8, 24, 25, 100, 4096, 35_840, 300_000, 5_000_000] {
            let block = malloc(size);
            assert_eq!(block as usize % 16, 0);
            // SAFETY: the block is live, and its usable size is what the library promises.
            unsafe {
                let usable = malloc_usable_size(block);
                let is_mapped = size >= mapped::MIN_MAPPED_SIZE;
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
    fn memory_from_calloc_is_zero_even_if_it_was_used_before() {
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
    fn a_failed_allocation_returns_null_and_sets_errno() {
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
        // SAFETY: `block` is valid for writing a pointer.
        unsafe {
            assert_eq!(posix_memalign(&raw mut block, 2, 8), libc::EINVAL);
            assert_eq!(posix_memalign(&raw mut block, 1 << 50, 8), libc::ENOMEM);
        }
        assert!(block.is_null());
        assert_eq!(errno::get(), 0);
    }

    #[test]
    fn large_blocks_have_mappings_of_their_own() {
        let is_mapped = |size: usize| {
            let block = malloc(size).cast::<u8>();
            // SAFETY: the block is live, and the word before it is its head.
            unsafe {
                let head = block.sub(8).cast::<[u8; 8]>().read();
                free(block.cast());
                mapped::is_mapped(usize::from_ne_bytes(head))
            }
        };
        assert!(!is_mapped(35_840));
        assert!(!is_mapped(mapped::MIN_MAPPED_SIZE - 1));
        assert!(is_mapped(mapped::MIN_MAPPED_SIZE));
    }

    #[test]
    fn a_large_block_from_calloc_is_zero_and_unchanged_by_a_failed_realloc() {
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
    fn threads_can_share_the_heap() {
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
