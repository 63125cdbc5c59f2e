//! Records the allocations of a process, over whatever allocator it has, as a library for
//! `LD_PRELOAD`: sizes, lifetimes and sampled stacks, in a file for each process.
//!
//! The exported functions are those that the GNU C library asks of a replacement of malloc (its
//! manual, "Replacing malloc"); each calls the function that would be called without this library.

// In a test program these names would stand before the allocator of the test harness itself.
#![cfg_attr(test, allow(dead_code))]
// Only C calls these.
#![allow(clippy::must_use_candidate)]

mod births;
mod clock;
#[cfg(not(test))]
mod cplusplus;
mod file;
mod next;
mod record;
mod recording;
mod samples;
mod system;
mod thread;

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::record::{How, made};

/// C17 7.22.3.4.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: malloc has no conditions.
    let block = unsafe { next::malloc(size) };
    made(block, size, How::Plain);
    block
}

/// C17 7.22.3.2.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: calloc has no conditions.
    let block = unsafe { next::calloc(count, size) };
    made(block, count.wrapping_mul(size), How::Zeroed);
    block
}

/// C17 7.22.3.5; recorded as the end of one block and the birth of another.
///
/// # Safety
/// `block` is null or came from a function of this library and has not been freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() {
        // SAFETY: as malloc.
        let fresh = unsafe { next::realloc(block, size) };
        made(fresh, size, How::Plain);
        return fresh;
    }
    if let Some(early) = next::early_size(block) {
        let fresh = malloc(size);
        if !fresh.is_null() {
            // SAFETY: both blocks are at least so long.
            unsafe { ptr::copy_nonoverlapping(block.cast::<u8>(), fresh.cast(), early.min(size)) };
        }
        return fresh;
    }
    // Before: another thread may be given the same place as soon as it is free.
    let birth = record::about_to_free(block);
    // SAFETY: the caller vouches for the block.
    let fresh = unsafe { next::realloc(block, size) };
    if fresh.is_null() && size != 0 {
        record::kept(block, birth);
        return fresh;
    }
    record::freed(birth);
    made(fresh, size, How::Resized);
    fresh
}

/// C17 7.22.3.3; leaves `errno` as it was if the allocator does.
///
/// # Safety
/// `block` is null or came from a function of this library and has not been freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if block.is_null() || next::early_size(block).is_some() {
        return;
    }
    record::freed(record::about_to_free(block));
    // SAFETY: the caller vouches for the block.
    unsafe { next::free(block) };
}

/// C17 7.22.3.1.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the allocator refuses what it cannot do.
    let block = unsafe { next::aligned_alloc(alignment, size) };
    made(block, size, How::Aligned);
    block
}

/// GNU.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    // SAFETY: the allocator refuses what it cannot do.
    let block = unsafe { next::memalign(alignment, size) };
    made(block, size, How::Aligned);
    block
}

/// POSIX.1-2017.
///
/// # Safety
/// `result` is valid for writing a pointer.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_memalign(
    result: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    // SAFETY: the caller vouches for `result`.
    let error = unsafe { next::posix_memalign(result, alignment, size) };
    if error == 0 {
        // SAFETY: the allocator has written it.
        made(unsafe { result.read() }, size, How::Aligned);
    }
    error
}

/// GNU.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: valloc has no conditions.
    let block = unsafe { next::valloc(size) };
    made(block, size, How::Aligned);
    block
}

/// GNU.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: pvalloc has no conditions.
    let block = unsafe { next::pvalloc(size) };
    made(block, size, How::Aligned);
    block
}

#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
#[used]
static WHEN_LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        recording::library_started();
    }
    loaded
};

#[cfg_attr(not(test), unsafe(link_section = ".fini_array"))]
#[used]
static WHEN_LEAVING: extern "C" fn() = {
    extern "C" fn leaving() {
        recording::ended();
    }
    leaving
};
