//! Allocates early blocks: the C library requests them while a hook looks up the allocator.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use equipoise_interpose::errno;

static mut MEMORY: [Unit; UNITS] = [[0; UNIT_WORDS]; UNITS];
static USED: AtomicUsize = AtomicUsize::new(0);

/// 16 bytes, the alignment of blocks. The unit before each block contains the size of the block.
type Unit = [usize; UNIT_WORDS];
const UNIT_WORDS: usize = 16 / size_of::<usize>();
/// Number of units for all early blocks.
const UNITS: usize = 1 << 12;

/// Returns an early block of `size` bytes; null with `ENOMEM` if the memory is used up.
pub fn allocate(size: usize) -> *mut c_void {
    let units = 1 + size.div_ceil(size_of::<Unit>());
    let first_unit = USED.fetch_add(units.min(UNITS), Ordering::Relaxed);
    if first_unit.saturating_add(units) > UNITS {
        return out_of_memory();
    }
    // SAFETY: the units are inside the memory, and no other call gets them.
    unsafe {
        let size_unit = (&raw mut MEMORY).cast::<Unit>().add(first_unit);
        (*size_unit)[0] = size;
        size_unit.add(1).cast()
    }
}

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
    fn only_early_blocks_have_a_size() {
        let (small, large) = (allocate(5), allocate(1000));
        assert_eq!(size_of_block(small), Some(5));
        assert_eq!(size_of_block(large), Some(1000));
        assert_eq!(large.addr() % 16, 0);
        assert_eq!(size_of_block((&raw const USED).cast_mut().cast()), None);
        assert!(allocate(usize::MAX).is_null());
    }
}
