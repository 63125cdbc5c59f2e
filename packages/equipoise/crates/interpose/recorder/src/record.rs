//! The work at each allocation and each free.

use std::ffi::c_void;

use crate::births::{self, Birth};
use crate::clock;
use crate::file::{Table, class_of};
use crate::recording;
use crate::samples;
use crate::thread::{self, Thread};

/// How a block was allocated; each kind is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Plain,
    Zeroed,
    Aligned,
    Resized,
}

/// Records that a block was allocated, unless it is null; returns the block.
#[inline]
pub fn made(block: *mut c_void, size: usize, origin: Origin) -> *mut c_void {
    if !block.is_null() {
        record(block, size, origin);
    }
    block
}

#[inline]
fn record(block: *mut c_void, size: usize, origin: Origin) {
    let Some((thread, table)) = table() else {
        without_table();
        return;
    };
    let ticks = clock::ticks();
    let class = class_of(size);
    table.rows[class].allocated(size as u64);
    match origin {
        Origin::Plain => {}
        Origin::Zeroed => table.zeroed.add(1),
        Origin::Aligned => table.aligned.add(1),
        Origin::Resized => table.resized.add(1),
    }
    if !births::note(block, Birth { class, ticks })
        && let Some(header) = recording::header()
    {
        header.births_without_place.add_shared(1);
    }
    let until_sample = thread.until_sample.get();
    let until_sample = until_sample.saturating_sub_unsigned(size as u64);
    thread.until_sample.set(until_sample);
    if until_sample < 0
        && !thread.busy.get()
        && let Some(header) = recording::header()
    {
        samples::take(thread, header, recording::keep_maps, size, ticks);
    }
}

/// Takes the birth of a block that is about to be freed out of the table.
#[inline]
pub fn about_to_free(block: *mut c_void) -> Option<Birth> {
    births::take(block)
}

/// Records that a block is being freed.
#[inline]
pub fn freed(birth: Option<Birth>) {
    let Some((_, table)) = table() else {
        without_table();
        return;
    };
    let ticks = clock::ticks();
    let Some(birth) = birth else {
        table.unknown_frees.add(1);
        return;
    };
    if birth.until(recording::start_ticks()) > 0 {
        table.inherited_frees.add(1);
        return;
    }
    let lifetime = birth.until(ticks).max(0).cast_unsigned();
    if let Some(row) = table.rows.get(birth.class) {
        row.freed_after(lifetime);
    }
}

/// Puts the birth of a block back, because the block was not freed after all.
pub fn put_back(block: *mut c_void, birth: Option<Birth>) {
    if let Some(birth) = birth {
        births::note(block, birth);
    }
}

/// Returns the thread and its table, if this process is recorded.
#[inline]
fn table() -> Option<(&'static Thread, &'static Table)> {
    // SAFETY: the thread's own place, which is there as long as the thread; the reference does not
    // leave this call of the thread, and cells allow others to the same place.
    let thread = unsafe { &*thread::current() };
    if !recording::is_attached(thread) {
        recording::attach(thread);
    }
    // SAFETY: null, or a table inside a mapping that is never given back.
    let table = unsafe { thread.table.get().as_ref() }?;
    Some((thread, table))
}

#[cold]
fn without_table() {
    if let Some(header) = recording::header() {
        header.calls_without_table.add_shared(1);
    }
}
