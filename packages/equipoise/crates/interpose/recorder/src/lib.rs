//! Records the allocations of a process with any allocator, as a library for `LD_PRELOAD`: sizes,
//! lifetimes and sampled stacks, in a file for each process.
//!
//! The exported functions are those that the GNU C library asks of a replacement of malloc (its
//! manual, "Replacing malloc"). Each calls the function that would be called without this library.
//!
//! - `record`: what is done at each allocation and each free.
//! - `births`: when each living block was allocated.
//! - `recording`: the file of the process, and the table of each thread.
//! - `file`: the layout of the file.
//! - `samples`, `maps`: sampled stacks, and the places of code in memory.
//! - `thread`, `clock`, `system`, `early`: thread-locals, clocks, system calls, early blocks.
//! - `cplusplus`: `new` and `delete`.

// In a test program these names would replace the allocator of the test harness itself.
#![cfg_attr(test, allow(dead_code))]

mod births;
mod clock;
#[cfg(not(test))]
mod cplusplus;
mod early;
mod file;
mod maps;
mod record;
mod recording;
mod samples;
mod system;
mod thread;

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::record::{Origin, made};

equipoise_interpose::at_load!(recording::library_started);
equipoise_interpose::at_exit!(recording::ended);

equipoise_interpose::hooks! {
    /// C17 7.22.3.4.
    fn malloc(size: usize) -> *mut c_void, else { early::allocate(size) } {
        made(next::malloc(size), size, Origin::Plain)
    }

    /// C17 7.22.3.2.
    fn calloc(count: usize, size: usize) -> *mut c_void, else {
        count.checked_mul(size).map_or(ptr::null_mut(), early::allocate)
    } {
        made(next::calloc(count, size), count.wrapping_mul(size), Origin::Zeroed)
    }

    /// C17 7.22.3.5; recorded as the end of one block and the birth of another.
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void, else { early::allocate(size) } {
        if block.is_null() {
            return made(next::realloc(block, size), size, Origin::Plain);
        }
        if let Some(early_size) = early::size_of_block(block) {
            let fresh = malloc(size);
            if !fresh.is_null() {
                ptr::copy_nonoverlapping(block.cast::<u8>(), fresh.cast(), early_size.min(size));
            }
            return fresh;
        }
        // Before: another thread may be given the same place as soon as it is free.
        let birth = record::about_to_free(block);
        let fresh = next::realloc(block, size);
        if fresh.is_null() && size != 0 {
            record::put_back(block, birth);
            return fresh;
        }
        record::freed(birth);
        made(fresh, size, Origin::Resized)
    }

    /// C17 7.22.3.3; leaves `errno` as it was if the allocator does.
    fn free(block: *mut c_void), else { } {
        if block.is_null() || early::size_of_block(block).is_some() {
            return;
        }
        record::freed(record::about_to_free(block));
        next::free(block);
    }

    /// C17 7.22.3.1.
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void, else {
        early::out_of_memory()
    } {
        made(next::aligned_alloc(alignment, size), size, Origin::Aligned)
    }

    /// GNU.
    fn memalign(alignment: usize, size: usize) -> *mut c_void, else { early::out_of_memory() } {
        made(next::memalign(alignment, size), size, Origin::Aligned)
    }

    /// POSIX.1-2017.
    fn posix_memalign(
        result: *mut *mut c_void, alignment: usize, size: usize,
    ) -> c_int, else { libc::ENOMEM } {
        let error = next::posix_memalign(result, alignment, size);
        if error == 0 {
            made(result.read(), size, Origin::Aligned);
        }
        error
    }

    /// GNU.
    fn valloc(size: usize) -> *mut c_void, else { early::out_of_memory() } {
        made(next::valloc(size), size, Origin::Aligned)
    }

    /// GNU.
    fn pvalloc(size: usize) -> *mut c_void, else { early::out_of_memory() } {
        made(next::pvalloc(size), size, Origin::Aligned)
    }
}
