//! Layout of the file in which a process records its allocations.
//!
//! The process maps the file into its memory, so the counts are complete even if the process is
//! killed. `src/equipoise/why/evidence/allocations.py` reads the file.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// First bytes of the file: "EQALLOC" and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"EQALLOC1");

/// Number of size classes: four for each power of two.
pub const CLASS_COUNT: usize = 192;
/// Number of lifetime classes; the class is the number of bits of the lifetime in ticks.
pub const LIFETIME_CLASS_COUNT: usize = 50;

pub const PAGE_BYTES: usize = 4096;
/// One table for each thread.
pub const MAX_TABLES: usize = 1024;
pub const TABLE_BYTES: usize = size_of::<Table>().next_multiple_of(PAGE_BYTES);
pub const MAPS_OFFSET: usize = PAGE_BYTES + MAX_TABLES * TABLE_BYTES;
pub const MAX_MAPS_BYTES: usize = 1 << 19;
pub const SAMPLES_OFFSET: usize = MAPS_OFFSET + MAX_MAPS_BYTES;
pub const MAX_SAMPLES: usize = 4096;
pub const FILE_BYTES: usize = SAMPLES_OFFSET + MAX_SAMPLES * size_of::<Sample>();

/// Length of the file if the disk was full, so that there is no recording. Setting the length needs
/// no disk space. Every other file is longer.
pub const FULL_DISK_FILE_BYTES: usize = 1;

/// A number in the file. The process and the reader of the file share it.
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

    /// Adds to a number that only one thread writes.
    #[inline]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    /// Adds to a number that threads share; returns the value before.
    pub fn add_shared(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::Relaxed)
    }

    /// Changes a number from `before` to `after`; returns `false` if it is not `before`.
    pub fn exchange(&self, before: u64, after: u64) -> bool {
        self.0
            .compare_exchange(before, after, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

/// The first page of the file. Offsets are in bytes from the start of the file.
#[repr(C)]
pub struct Header {
    pub magic: Number,
    pub table_offset: Number,
    pub table_bytes: Number,
    /// Number of tables that the file has space for.
    pub max_tables: Number,
    pub tables_used: Number,
    pub classes: Number,
    pub lifetimes: Number,
    pub row_words: Number,
    pub maps_offset: Number,
    pub maps_bytes: Number,
    pub samples_offset: Number,
    pub sample_bytes: Number,
    /// Number of samples that the file has space for.
    pub max_samples: Number,
    /// Number of samples taken; it may exceed `max_samples`.
    pub samples_taken: Number,
    pub process_id: Number,
    pub parent_id: Number,
    /// Two times, each by the processor's clock and by the monotonic clock.
    pub first_ticks: Number,
    pub first_ns: Number,
    pub second_ticks: Number,
    pub second_ns: Number,
    /// 1 if the processor's clock has the same rate on every core and in every power state.
    pub steady_clock: Number,
    /// 1 after the process has ended by `exit`.
    pub ended: Number,
    /// Number of forked children that could not create a file of their own.
    pub children_without_file: Number,
    /// Number of allocations and frees by threads without a table.
    pub calls_without_table: Number,
    /// Number of blocks whose birth could not be stored, because memory ran out.
    pub births_without_memory: Number,
    /// Processor of the registers in samples: 1 is x86-64, 2 is `AArch64`, 0 is any other.
    pub machine: Number,
    /// Number of threads without a table because the disk was full.
    pub tables_without_space: Number,
    /// Number of samples that were not kept because the disk was full.
    pub samples_without_space: Number,
    /// 1 if the disk had no space for the whole memory maps of the process.
    pub maps_without_space: Number,
}

const _: () = assert!(size_of::<Header>() <= PAGE_BYTES);

impl Header {
    /// Returns a pointer to this offset in the mapped file, which begins with the header. A pointer
    /// made from the reference would be valid for the header only, so it is made from the address.
    pub fn pointer_at<T>(&self, offset: usize) -> *mut T {
        ptr::with_exposed_provenance_mut(ptr::from_ref(self).addr() + offset)
    }
}

/// Counts of one thread, and of ended threads that had the same table.
#[repr(C)]
pub struct Table {
    /// Id of the thread that owns the table; 0 if no thread has owned it.
    pub owner: Number,
    /// Frees, in a forked child, of blocks that were allocated before the fork.
    pub inherited_frees: Number,
    /// Frees of blocks whose allocation was not recorded.
    pub unknown_frees: Number,
    /// Allocations by `realloc`, by `calloc`, and with an alignment.
    pub resized: Number,
    pub zeroed: Number,
    pub aligned: Number,
    spare: [u64; 2],
    pub rows: [Row; CLASS_COUNT],
}

/// Counts of one size class.
#[repr(C)]
pub struct Row {
    pub allocations: Number,
    pub bytes: Number,
    /// Size of more than half of the blocks, if there is one (Boyer and Moore's majority vote).
    pub majority_size: Number,
    /// Votes for the majority size minus votes for other sizes, since the majority size changed.
    votes: Number,
    /// Number of blocks of the majority size since that change.
    pub majority_count: Number,
    spare: u64,
    pub lifetimes: [Number; LIFETIME_CLASS_COUNT],
}

impl Row {
    #[inline]
    pub fn count_allocation(&self, size: u64) {
        self.allocations.add(1);
        self.bytes.add(size);
        if self.majority_size.get() == size && self.votes.get() != 0 {
            self.votes.add(1);
            self.majority_count.add(1);
        } else {
            self.vote_against_majority(size);
        }
    }

    fn vote_against_majority(&self, size: u64) {
        if self.votes.get() == 0 {
            self.majority_size.set(size);
            self.votes.set(1);
            self.majority_count.set(1);
        } else {
            self.votes.add(u64::MAX);
        }
    }

    /// Counts the free of a block that lived for this number of ticks.
    #[inline]
    pub fn count_free_after(&self, ticks: u64) {
        let bits = (u64::BITS - ticks.leading_zeros()) as usize;
        self.lifetimes[bits.min(LIFETIME_CLASS_COUNT - 1)].add(1);
    }
}

/// Returns the size class: 4 p + r, where p is the power of two and r the next two bits of the
/// size.
#[inline]
pub fn class_of(size: usize) -> usize {
    let size = size.clamp(1, (1 << (CLASS_COUNT / 4)) - 1);
    let power = size.ilog2() as usize;
    4 * power + ((size << 2 >> power) & 3)
}

/// Registers and the top of the stack at one allocation; the reader unwinds the stack.
#[repr(C)]
pub struct Sample {
    pub size: Number,
    /// Mean number of bytes between two samples.
    pub interval: Number,
    pub ticks: Number,
    pub thread_id: Number,
    /// Number of bytes in `stack` that are valid.
    pub stack_bytes: Number,
    spare: u64,
    /// Instruction pointer, stack pointer, frame pointer, then the callee-saved registers.
    pub registers: [Number; 10],
    pub stack: [Number; STACK_WORDS],
}

/// Number of words of the stack in a sample, which fills two pages.
pub const STACK_WORDS: usize = (2 * PAGE_BYTES) / 8 - 16;
const _: () = assert!(size_of::<Sample>() == 2 * PAGE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_four_classes_between_powers_of_two() {
        assert_eq!(class_of(0), class_of(1));
        assert_eq!(class_of(32_768), 60);
        assert_eq!(class_of(35_600), 60);
        assert_eq!(class_of(40_959), 60);
        assert_eq!(class_of(40_960), 61);
        assert_eq!(class_of(usize::MAX), CLASS_COUNT - 1);
    }

    #[test]
    fn classes_grow_with_sizes() {
        let classes: Vec<usize> = (1..100_000).map(class_of).collect();
        assert!(classes.is_sorted());
    }

    #[test]
    fn the_majority_size_is_found() {
        // SAFETY: all numbers may be zero.
        let row: Row = unsafe { std::mem::zeroed() };
        for index in 0..100 {
            let is_rare = index % 3 == 0;
            row.count_allocation(if is_rare { 33_000 + index } else { 35_600 });
        }
        assert_eq!(row.majority_size.get(), 35_600);
        assert!(row.majority_count.get() <= 66);
        assert_eq!(row.allocations.get(), 100);
    }

    #[test]
    fn the_class_of_a_lifetime_is_its_number_of_bits() {
        // SAFETY: all numbers may be zero.
        let row: Row = unsafe { std::mem::zeroed() };
        for ticks in [0, 1, 2, 3, 1023, 1024, u64::MAX] {
            row.count_free_after(ticks);
        }
        let counts = row.lifetimes.iter().map(Number::get).enumerate();
        let counted: Vec<(usize, u64)> = counts.filter(|(_, count)| *count > 0).collect();
        let last = LIFETIME_CLASS_COUNT - 1;
        let expected = [(0, 1), (1, 1), (2, 2), (10, 1), (11, 1), (last, 1)];
        assert_eq!(counted, expected);
    }
}
