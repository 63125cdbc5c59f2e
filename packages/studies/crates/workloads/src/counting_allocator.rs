//! The allocator of unit tests, which counts the allocations of certain sizes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::RangeInclusive;

/// An empty range of sizes, so that no allocation is counted.
const NO_SIZES: (usize, usize) = (1, 0);

thread_local! {
    /// Smallest and largest size that is counted.
    static COUNTED_SIZES: Cell<(usize, usize)> = const { Cell::new(NO_SIZES) };
    /// Number of counted allocations.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts the allocations of each thread.
struct CountingAllocator;

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

impl CountingAllocator {
    fn count(size: usize) {
        let (minimum, maximum) = COUNTED_SIZES.get();
        if (minimum..=maximum).contains(&size) {
            COUNT.set(COUNT.get() + 1);
        }
    }
}

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        // SAFETY: the caller vouches for the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller vouches for the block and its layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size);
        // SAFETY: the caller vouches for the block, its layout and the size.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Runs `work`; returns how many blocks in a range of sizes this thread allocated, and the result of
/// `work`.
pub fn allocations_of<Answer>(
    sizes: RangeInclusive<usize>,
    work: impl FnOnce() -> Answer,
) -> (usize, Answer) {
    COUNT.set(0);
    COUNTED_SIZES.set((*sizes.start(), *sizes.end()));
    let answer = work();
    COUNTED_SIZES.set(NO_SIZES);
    (COUNT.get(), answer)
}
