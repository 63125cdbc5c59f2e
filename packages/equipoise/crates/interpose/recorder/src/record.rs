//! Records each allocation and each free in the table of the thread.

use std::ffi::c_void;

use crate::births::{self, Birth};
use crate::clock;
use crate::file::{Table, class_of};
use crate::recording;
use crate::samples;
use crate::thread::{self, Thread};

/// How a block was allocated. The table of a thread has separate counts for all but `Plain`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Plain,
    Zeroed,
    Aligned,
    Resized,
}

/// Records the allocation of a block, unless the block is null; returns the block.
#[inline]
pub fn record_block(block: *mut c_void, size: usize, origin: Origin) -> *mut c_void {
    if !block.is_null() {
        record(block, size, origin);
    }
    block
}

#[inline]
fn record(block: *mut c_void, size: usize, origin: Origin) {
    let Some((thread, table)) = thread_and_table() else {
        count_call_without_table();
        return;
    };
    let ticks = clock::ticks();
    let class = class_of(size);
    table.rows[class].count_allocation(size as u64);
    match origin {
        Origin::Plain => {}
        Origin::Zeroed => table.zeroed.add(1),
        Origin::Aligned => table.aligned.add(1),
        Origin::Resized => table.resized.add(1),
    }
    if !births::store(block, Birth { class, ticks })
        && let Some(header) = recording::header()
    {
        header.births_without_memory.add_shared(1);
    }
    let bytes_before = thread.bytes_until_sample.get();
    let bytes_until_sample = bytes_before.saturating_sub_unsigned(size as u64);
    thread.bytes_until_sample.set(bytes_until_sample);
    if bytes_until_sample < 0
        && !thread.is_in_library.get()
        && let Some(header) = recording::header()
    {
        samples::take(thread, header, recording::write_maps, size, ticks);
    }
}

/// Records the free of a block. `birth` is `None` if the allocation of the block was not recorded.
#[inline]
pub fn record_free(birth: Option<Birth>) {
    let Some((_, table)) = thread_and_table() else {
        count_call_without_table();
        return;
    };
    let ticks = clock::ticks();
    let Some(birth) = birth else {
        table.unknown_frees.add(1);
        return;
    };
    if birth.ticks_until(recording::start_ticks()) > 0 {
        table.inherited_frees.add(1);
        return;
    }
    let lifetime = birth.ticks_until(ticks).max(0).cast_unsigned();
    if let Some(row) = table.rows.get(birth.class) {
        row.count_free_after(lifetime);
    }
}

/// Stores the birth of a block again, because the block was not freed.
pub fn put_back(block: *mut c_void, birth: Option<Birth>) {
    if let Some(birth) = birth {
        births::store(block, birth);
    }
}

#[inline]
fn thread_and_table() -> Option<(&'static Thread, &'static Table)> {
    // SAFETY: the state exists as long as the thread. The reference stays in this thread, and cells
    // permit several references.
    let thread = unsafe { &*thread::current() };
    if !recording::is_attached(thread) {
        recording::attach(thread);
    }
    // SAFETY: null, or a table inside a mapping that is never unmapped.
    let table = unsafe { thread.table.get().as_ref() }?;
    Some((thread, table))
}

#[cold]
fn count_call_without_table() {
    if let Some(header) = recording::header() {
        header.calls_without_table.add_shared(1);
    }
}
