//! Allocations of a size that the code under test makes, for unit tests.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::RangeInclusive;

thread_local! {
    static WATCHED: Cell<(usize, usize)> = const { Cell::new((1, 0)) };
    static SEEN: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

impl Counting {
    fn count(size: usize) {
        let (minimum, maximum) = WATCHED.get();
        if (minimum..=maximum).contains(&size) {
            SEEN.set(SEEN.get() + 1);
        }
    }
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
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

/// Counts the blocks in a range of sizes that this thread allocates during `work`.
pub fn allocations_of<Answer>(
    sizes: RangeInclusive<usize>,
    work: impl FnOnce() -> Answer,
) -> (usize, Answer) {
    SEEN.set(0);
    WATCHED.set((*sizes.start(), *sizes.end()));
    let answer = work();
    WATCHED.set((1, 0));
    (SEEN.get(), answer)
}
