//! Table of the births of living blocks: when each block was allocated, and its size class.
//!
//! The table has one word for each address at which a block can begin. A birth in front of each
//! block would change the requests to the allocator. The addresses are divided into regions of one
//! GiB. Each region with blocks has a leaf: a part of the table, in separate reserved memory. Only
//! written pages of a leaf use memory, and two reads find the word of a block.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use equipoise_interpose::errno;

use crate::system;

/// Bits of a user address on x86-64 and `AArch64` with four levels of page tables.
const ADDRESS_BITS: u32 = 48;
/// Bits of an address within its region.
const REGION_BITS: u32 = 30;
const REGIONS: usize = 1 << (ADDRESS_BITS - REGION_BITS);
/// Number of lowest bits of a block's address that are 0; some allocators align to 8 bytes only.
const ALIGNMENT_BITS: u32 = 3;
/// Size of a leaf: 8 bytes for each address at which a block can begin.
const LEAF_BYTES: usize = 1 << (REGION_BITS - ALIGNMENT_BITS) << 3;

/// The leaf of each region: null before the region has a block, `NO_MEMORY` without memory for it.
static LEAVES: [AtomicPtr<AtomicU64>; REGIONS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; REGIONS];
/// Marks a region whose leaf got no memory from the kernel.
const NO_MEMORY: *mut AtomicU64 = ptr::without_provenance_mut(1);

/// A block's size class, and the ticks at its birth, which wrap around after months (2^56 ticks).
#[derive(Clone, Copy)]
pub struct Birth {
    pub class: usize,
    pub ticks: u64,
}

const CLASS_BITS: u32 = 8;
const CLASS_MASK: u64 = (1 << CLASS_BITS) - 1;
const TICKS_MASK: u64 = u64::MAX >> CLASS_BITS;

impl Birth {
    fn to_word(self) -> u64 {
        // Class 0 at tick 0 would look like an empty word, so tick 0 counts as tick 1.
        ((self.ticks & TICKS_MASK).max(1) << CLASS_BITS) | self.class as u64
    }

    fn from_word(word: u64) -> Option<Self> {
        (word != 0).then_some(Self {
            class: (word & CLASS_MASK) as usize,
            ticks: word >> CLASS_BITS,
        })
    }

    /// Returns the ticks from this birth to a time; negative if the time is before the birth.
    pub fn ticks_until(self, time: u64) -> i64 {
        let difference = time.wrapping_sub(self.ticks) << CLASS_BITS;
        difference.cast_signed() >> CLASS_BITS
    }
}

/// Stores the birth of a block; returns `false` if there is no memory for it.
#[inline]
pub fn store(block: *mut c_void, birth: Birth) -> bool {
    let Some(leaf) = LEAVES.get(block.addr() >> REGION_BITS) else {
        return false;
    };
    let mut words = leaf.load(Ordering::Acquire);
    if words.is_null() {
        words = reserve_leaf(leaf);
    }
    if words == NO_MEMORY {
        return false;
    }
    // SAFETY: the leaf has a word for every block of its region.
    unsafe { &*words.add(word_index(block)) }.store(birth.to_word(), Ordering::Relaxed);
    true
}

/// Removes the birth of a block that is about to be freed, and returns it.
#[inline]
pub fn take(block: *mut c_void) -> Option<Birth> {
    let leaf = LEAVES.get(block.addr() >> REGION_BITS)?;
    let words = leaf.load(Ordering::Acquire);
    if words.is_null() || words == NO_MEMORY {
        return None;
    }
    // SAFETY: the leaf has a word for every block of its region.
    let word = unsafe { &*words.add(word_index(block)) };
    let birth = Birth::from_word(word.load(Ordering::Relaxed));
    word.store(0, Ordering::Relaxed);
    birth
}

#[inline]
fn word_index(block: *mut c_void) -> usize {
    (block.addr() & ((1 << REGION_BITS) - 1)) >> ALIGNMENT_BITS
}

#[cold]
fn reserve_leaf(leaf: &AtomicPtr<AtomicU64>) -> *mut AtomicU64 {
    errno::preserved(|| {
        let memory = system::reserve(LEAF_BYTES);
        if memory.is_null() {
            leaf.store(NO_MEMORY, Ordering::Release);
            return NO_MEMORY;
        }
        // A huge page for a few words would waste memory.
        system::advise(memory, LEAF_BYTES, libc::MADV_NOHUGEPAGE);
        let words = memory.cast::<AtomicU64>();
        let exchanged =
            leaf.compare_exchange(ptr::null_mut(), words, Ordering::AcqRel, Ordering::Acquire);
        match exchanged {
            Ok(_) => words,
            Err(words_of_other_thread) => {
                // SAFETY: no other thread has seen this mapping.
                unsafe { system::unmap(memory, LEAF_BYTES) };
                words_of_other_thread
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
    fn a_birth_can_be_taken_once() {
        let (class, ticks) = (7, 99);
        let birth = Birth { class, ticks };
        assert!(take(block(0x7000_1000)).is_none());
        assert!(store(block(0x7000_1000), birth));
        let taken = take(block(0x7000_1000)).expect("it was stored");
        assert_eq!((taken.class, taken.ticks), (7, 99));
        assert!(take(block(0x7000_1000)).is_none());
    }

    #[test]
    fn blocks_eight_bytes_apart_have_separate_births() {
        assert!(store(block(0x9000_0000), Birth { class: 1, ticks: 1 }));
        assert!(store(block(0x9000_0008), Birth { class: 2, ticks: 2 }));
        assert_eq!(take(block(0x9000_0000)).map(|birth| birth.class), Some(1));
        assert_eq!(take(block(0x9000_0008)).map(|birth| birth.class), Some(2));
    }

    #[test]
    fn a_lifetime_is_right_when_the_clock_wraps_around() {
        let (class, ticks) = (0, u64::MAX - 5);
        let birth = Birth::from_word(Birth { class, ticks }.to_word()).expect("a word");
        assert_eq!(birth.ticks_until(4), 10);
        assert_eq!(Birth { class: 0, ticks: 9 }.ticks_until(4), -5);
    }

    #[test]
    fn a_birth_beyond_all_regions_is_not_stored() {
        let far = block(1 << ADDRESS_BITS);
        assert!(!store(far, Birth { class: 0, ticks: 1 }));
        assert!(take(far).is_none());
    }
}
