//! Blocks that are allocated while the first function of the allocator is looked up: the C library
//! may allocate for a look-up.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use equipoise_interpose::errno;

/// Memory of early blocks, which is never given back.
static mut MEMORY: [Unit; UNITS] = [[0; UNIT_WORDS]; UNITS];
static USED: AtomicUsize = AtomicUsize::new(0);

/// 16 bytes, the alignment of blocks; the unit before each block holds the size of the block.
type Unit = [usize; UNIT_WORDS];
const UNIT_WORDS: usize = 16 / size_of::<usize>();
const UNITS: usize = 1 << 12;

/// Returns an early block of `size` bytes; null with `ENOMEM` if there is no room.
pub fn allocate(size: usize) -> *mut c_void {
    let units = 1 + size.div_ceil(size_of::<Unit>());
    let at = USED.fetch_add(units.min(UNITS), Ordering::Relaxed);
    if at.saturating_add(units) > UNITS {
        return out_of_memory();
    }
    // SAFETY: `at + units` units are inside, and no other call gets them.
    unsafe {
        let header = (&raw mut MEMORY).cast::<Unit>().add(at);
        (*header)[0] = size;
        header.add(1).cast()
    }
}

/// Returns null with `ENOMEM`.
pub fn out_of_memory() -> *mut c_void {
    errno::set(libc::ENOMEM);
    ptr::null_mut()
}

/// Returns the size of an early block; `None` for any other block.
#[inline]
pub fn size_of_block(block: *mut c_void) -> Option<usize> {
    let first = (&raw const MEMORY).addr();
    if block.addr().wrapping_sub(first) >= size_of::<[Unit; UNITS]>() {
        return None;
    }
    // SAFETY: every early block has its size before it.
    Some(unsafe { block.cast::<usize>().sub(UNIT_WORDS).read() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_block_knows_its_size_and_others_are_none() {
        let (one, other) = (allocate(5), allocate(1000));
        assert_eq!(size_of_block(one), Some(5));
        assert_eq!(size_of_block(other), Some(1000));
        assert_eq!(other.addr() % 16, 0);
        assert_eq!(size_of_block((&raw const USED).cast_mut().cast()), None);
        assert!(allocate(usize::MAX).is_null());
    }
}
