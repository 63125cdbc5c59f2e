//! The file of one process, mapped into its memory: the counts are complete however the process
//! ends. `src/equipoise/why/evidence/allocations.py` reads it.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// "EQALLOC" and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"EQALLOC1");

/// Size classes: four to each power of two.
pub const CLASSES: usize = 192;
/// Lifetimes by the number of bits of their ticks.
pub const LIFETIMES: usize = 50;

pub const PAGE: usize = 4096;
pub const TABLES: usize = 1024;
pub const TABLE_BYTES: usize = size_of::<Table>().next_multiple_of(PAGE);
pub const MAPS_OFFSET: usize = PAGE + TABLES * TABLE_BYTES;
pub const MAPS_BYTES: usize = 1 << 19;
pub const SAMPLES_OFFSET: usize = MAPS_OFFSET + MAPS_BYTES;
pub const SAMPLES: usize = 4096;
pub const FILE_BYTES: usize = SAMPLES_OFFSET + SAMPLES * size_of::<Sample>();

/// Length of the file of a process whose recording found no room on the disk.
///
/// A length takes no room itself. The file is either as long as this or at least as long as a
/// header.
pub const NO_ROOM_BYTES: usize = 1;

/// A number that one thread (or the kernel for it) writes and the reader reads.
#[derive(Default)]
#[repr(transparent)]
pub struct Number(AtomicU64);

impl Number {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to a number that only one thread writes, without a locked instruction.
    #[inline]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    /// Adds to a number that threads share; returns its value before.
    pub fn add_shared(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::Relaxed)
    }

    /// Replaces `before` by `after`; returns whether it was `before`.
    pub fn exchange(&self, before: u64, after: u64) -> bool {
        self.0
            .compare_exchange(before, after, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

/// The first page.
#[repr(C)]
pub struct Header {
    pub magic: Number,
    pub table_offset: Number,
    pub table_bytes: Number,
    pub tables: Number,
    pub tables_used: Number,
    pub classes: Number,
    pub lifetimes: Number,
    pub row_words: Number,
    pub maps_offset: Number,
    pub maps_bytes: Number,
    pub samples_offset: Number,
    pub sample_bytes: Number,
    pub samples: Number,
    /// May exceed `samples`: the rest had no room.
    pub samples_taken: Number,
    pub process: Number,
    pub parent: Number,
    /// Two moments, each by both clocks.
    pub first_ticks: Number,
    pub first_ns: Number,
    pub second_ticks: Number,
    pub second_ns: Number,
    pub steady_clock: Number,
    /// 1 once the process has left by `exit`.
    pub ended: Number,
    /// Forked children that could not make a file of their own.
    pub children_without_file: Number,
    /// Allocations and frees of threads for which there was no table.
    pub calls_without_table: Number,
    /// Blocks whose birth there was no memory for.
    pub births_without_place: Number,
    /// Machine of the registers in samples: 1 x86-64, 2 `AArch64`, 0 none.
    pub machine: Number,
    /// Threads whose table found no room on the disk.
    pub tables_without_room: Number,
    /// Samples that found no room on the disk.
    pub samples_without_room: Number,
    /// 1 once the maps of the process found no room on the disk, in whole or in part.
    pub maps_without_room: Number,
}

const _: () = assert!(size_of::<Header>() <= PAGE);

impl Header {
    /// The place at this distance from the header, which is the beginning of the mapping.
    ///
    /// A pointer made from the reference would be valid for the header only. This one is made from
    /// the address, like the pointer to the mapping.
    pub fn place<T>(&self, offset: usize) -> *mut T {
        ptr::with_exposed_provenance_mut(ptr::from_ref(self).addr() + offset)
    }
}

/// Counts of one thread at a time; the reader adds the tables up.
#[repr(C)]
pub struct Table {
    /// The thread that owns it, 0 before the first.
    pub owner: Number,
    /// Blocks that were born before a fork and freed after it, in the child.
    pub inherited_frees: Number,
    /// Blocks that were not seen when they were allocated.
    pub unknown_frees: Number,
    pub resized: Number,
    pub zeroed: Number,
    pub aligned: Number,
    spare: [u64; 2],
    pub rows: [Row; CLASSES],
}

/// Counts of one size class.
#[repr(C)]
pub struct Row {
    pub allocations: Number,
    pub bytes: Number,
    /// Size of the majority of the blocks in the class, if there is one (Boyer and Moore's vote).
    pub majority: Number,
    votes: Number,
    /// Number of blocks that had that size since it became the majority.
    pub majority_seen: Number,
    spare: u64,
    pub lifetimes: [Number; LIFETIMES],
}

impl Row {
    #[inline]
    pub fn allocated(&self, size: u64) {
        self.allocations.add(1);
        self.bytes.add(size);
        if self.majority.get() == size && self.votes.get() != 0 {
            self.votes.add(1);
            self.majority_seen.add(1);
        } else {
            self.contest(size);
        }
    }

    fn contest(&self, size: u64) {
        if self.votes.get() == 0 {
            self.majority.set(size);
            self.votes.set(1);
            self.majority_seen.set(1);
        } else {
            self.votes.add(u64::MAX);
        }
    }

    #[inline]
    pub fn freed_after(&self, ticks: u64) {
        let bits = (u64::BITS - ticks.leading_zeros()) as usize;
        self.lifetimes[bits.min(LIFETIMES - 1)].add(1);
    }
}

/// The class of a size.
#[inline]
pub fn class_of(size: usize) -> usize {
    let size = size.clamp(1, (1 << (CLASSES / 4)) - 1);
    let power = size.ilog2() as usize;
    4 * power + ((size << 2 >> power) & 3)
}

/// Registers and the top of a stack at one allocation, to be unwound later.
#[repr(C)]
pub struct Sample {
    pub size: Number,
    /// Mean number of bytes between two samples.
    pub interval: Number,
    pub ticks: Number,
    pub thread: Number,
    /// Number of bytes of `stack` that were kept.
    pub kept: Number,
    spare: u64,
    /// Instruction, stack and frame pointer, then those that a callee saves.
    pub registers: [Number; 10],
    pub stack: [Number; STACK_WORDS],
}

pub const STACK_WORDS: usize = (2 * PAGE) / 8 - 16;
const _: () = assert!(size_of::<Sample>() == 2 * PAGE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_a_quarter_of_a_power_of_two() {
        assert_eq!(class_of(0), class_of(1));
        assert_eq!(class_of(32_768), 60);
        assert_eq!(class_of(35_600), 60);
        assert_eq!(class_of(40_959), 60);
        assert_eq!(class_of(40_960), 61);
        assert_eq!(class_of(usize::MAX), CLASSES - 1);
    }

    #[test]
    fn classes_grow_with_sizes() {
        let classes: Vec<usize> = (1..100_000).map(class_of).collect();
        assert!(classes.is_sorted());
    }

    #[test]
    fn the_majority_of_sizes_is_found_whatever_the_order() {
        // SAFETY: all numbers may be zero.
        let row: Row = unsafe { std::mem::zeroed() };
        for index in 0..100 {
            let is_rare = index % 3 == 0;
            row.allocated(if is_rare { 33_000 + index } else { 35_600 });
        }
        assert_eq!(row.majority.get(), 35_600);
        assert!(row.majority_seen.get() <= 66);
        assert_eq!(row.allocations.get(), 100);
    }

    #[test]
    fn a_lifetime_is_counted_by_its_bits() {
        // SAFETY: all numbers may be zero.
        let row: Row = unsafe { std::mem::zeroed() };
        for ticks in [0, 1, 2, 3, 1023, 1024, u64::MAX] {
            row.freed_after(ticks);
        }
        let counts = row.lifetimes.iter().map(Number::get).enumerate();
        let counted: Vec<(usize, u64)> = counts.filter(|(_, count)| *count > 0).collect();
        let expected = [(0, 1), (1, 1), (2, 2), (10, 1), (11, 1), (LIFETIMES - 1, 1)];
        assert_eq!(counted, expected);
    }
}
