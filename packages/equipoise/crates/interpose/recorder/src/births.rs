//! Birth time and size class of each living block: one word for each place of a block.
//!
//! A header before each block would change the requests to the allocator, and would not distinguish
//! our blocks from blocks of unknown origin. So the words are in separate reserved memory, found by
//! the block's address with two reads: one reservation for each GiB of addresses in which there are
//! blocks, of which only what is written costs memory.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use equipoise_interpose::errno;

use crate::system;

/// User addresses of x86-64 and `AArch64` with four levels of page tables.
const ADDRESS_BITS: u32 = 48;
const REGION_BITS: u32 = 30;
const REGIONS: usize = 1 << (ADDRESS_BITS - REGION_BITS);
/// Some allocators align small blocks to 8 bytes only.
const PLACE_BITS: u32 = 3;
const REGION_BYTES: usize = 1 << (REGION_BITS - PLACE_BITS) << 3;

/// Null until a block is in the region; `NONE` if the kernel gave no memory for it.
static LEAVES: [AtomicPtr<AtomicU64>; REGIONS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; REGIONS];
const NONE: *mut AtomicU64 = ptr::without_provenance_mut(1);

/// A block's class and the ticks at its birth, which wrap after 2^56: months.
#[derive(Clone, Copy)]
pub struct Birth {
    pub class: usize,
    pub ticks: u64,
}

const CLASS_BITS: u32 = 8;
const CLASS_MASK: u64 = (1 << CLASS_BITS) - 1;
const TICKS_MASK: u64 = u64::MAX >> CLASS_BITS;

impl Birth {
    fn word(self) -> u64 {
        // Class 0 at tick 0 would be the empty word; one tick more does no harm.
        ((self.ticks & TICKS_MASK).max(1) << CLASS_BITS) | self.class as u64
    }

    fn of(word: u64) -> Option<Self> {
        (word != 0).then_some(Self {
            class: (word & CLASS_MASK) as usize,
            ticks: word >> CLASS_BITS,
        })
    }

    /// Returns the ticks from this birth to `later`; negative if that was before.
    pub fn until(self, later: u64) -> i64 {
        let difference = later.wrapping_sub(self.ticks) << CLASS_BITS;
        difference.cast_signed() >> CLASS_BITS
    }
}

/// Notes a birth; `false` if there is no place for it.
#[inline]
pub fn note(block: *mut c_void, birth: Birth) -> bool {
    let Some(leaf) = LEAVES.get(block.addr() >> REGION_BITS) else {
        return false;
    };
    let mut words = leaf.load(Ordering::Acquire);
    if words.is_null() {
        words = make_leaf(leaf);
    }
    if words == NONE {
        return false;
    }
    // SAFETY: the leaf has a word for every place of its region.
    unsafe { &*words.add(place_of(block)) }.store(birth.word(), Ordering::Relaxed);
    true
}

/// Removes the birth of a block, before the block itself is freed.
#[inline]
pub fn take(block: *mut c_void) -> Option<Birth> {
    let leaf = LEAVES.get(block.addr() >> REGION_BITS)?;
    let words = leaf.load(Ordering::Acquire);
    if words.is_null() || words == NONE {
        return None;
    }
    // SAFETY: the leaf has a word for every place of its region.
    let word = unsafe { &*words.add(place_of(block)) };
    let birth = Birth::of(word.load(Ordering::Relaxed));
    word.store(0, Ordering::Relaxed);
    birth
}

#[inline]
fn place_of(block: *mut c_void) -> usize {
    (block.addr() & ((1 << REGION_BITS) - 1)) >> PLACE_BITS
}

#[cold]
fn make_leaf(leaf: &AtomicPtr<AtomicU64>) -> *mut AtomicU64 {
    errno::preserved(|| {
        let fresh = system::reserve(REGION_BYTES);
        if fresh.is_null() {
            leaf.store(NONE, Ordering::Release);
            return NONE;
        }
        // A huge page for a few words would cost more than all that is recorded.
        system::advise(fresh, REGION_BYTES, libc::MADV_NOHUGEPAGE);
        let words = fresh.cast::<AtomicU64>();
        let exchanged =
            leaf.compare_exchange(ptr::null_mut(), words, Ordering::AcqRel, Ordering::Acquire);
        match exchanged {
            Ok(_) => words,
            Err(other) => {
                // SAFETY: no other thread has seen our mapping.
                unsafe { system::unmap(fresh, REGION_BYTES) };
                other
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: usize) -> *mut c_void {
        ptr::without_provenance_mut(address)
    }

    #[test]
    fn a_birth_is_taken_once() {
        let (class, ticks) = (7, 99);
        let birth = Birth { class, ticks };
        assert!(take(block(0x7000_1000)).is_none());
        assert!(note(block(0x7000_1000), birth));
        let taken = take(block(0x7000_1000)).expect("it was noted");
        assert_eq!((taken.class, taken.ticks), (7, 99));
        assert!(take(block(0x7000_1000)).is_none());
    }

    #[test]
    fn neighbours_of_eight_bytes_are_told_apart() {
        assert!(note(block(0x9000_0000), Birth { class: 1, ticks: 1 }));
        assert!(note(block(0x9000_0008), Birth { class: 2, ticks: 2 }));
        assert_eq!(take(block(0x9000_0000)).map(|birth| birth.class), Some(1));
        assert_eq!(take(block(0x9000_0008)).map(|birth| birth.class), Some(2));
    }

    #[test]
    fn a_lifetime_outlives_the_wrap_of_the_clock() {
        let (class, ticks) = (0, u64::MAX - 5);
        let birth = Birth::of(Birth { class, ticks }.word()).expect("a word");
        assert_eq!(birth.until(4), 10);
        assert_eq!(Birth { class: 0, ticks: 9 }.until(4), -5);
    }

    #[test]
    fn an_address_beyond_all_regions_has_no_place() {
        let far = block(1 << ADDRESS_BITS);
        assert!(!note(far, Birth { class: 0, ticks: 1 }));
        assert!(take(far).is_none());
    }
}
