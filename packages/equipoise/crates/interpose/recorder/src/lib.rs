//! A library for `LD_PRELOAD` that records the allocations of a process: sizes, lifetimes and
//! sampled stacks. Any allocator is supported, and each process has its own file.
//!
//! A block is the memory that one allocation returns. The exported functions are the functions of
//! malloc and its relatives (GNU C library manual, "Replacing malloc"). Each function calls the
//! function that the program would call without this library.
//!
//! - `record`: counts each allocation and each free.
//! - `births`: when each living block was allocated.
//! - `recording`: the file of the process, and the table of each thread.
//! - `file`: the layout of the file.
//! - `samples`, `maps`: sampled stacks, and the memory maps that give their functions names.
//! - `thread`, `clock`, `system`, `early`: thread-locals, clocks, system calls, early blocks.
//! - `cplusplus`: `new` and `delete`.

// A test program does not export the functions, so nothing calls them there.
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

use crate::record::{Origin, record_block};

equipoise_interpose::at_load!(recording::note_start_of_c_library);
equipoise_interpose::at_exit!(recording::finish);

equipoise_interpose::hooks! {
    fn malloc(size: usize) -> *mut c_void, else { early::allocate(size) } {
        record_block(next::malloc(size), size, Origin::Plain)
    }

    fn calloc(count: usize, size: usize) -> *mut c_void, else {
        count.checked_mul(size).map_or(ptr::null_mut(), early::allocate)
    } {
        record_block(next::calloc(count, size), count.wrapping_mul(size), Origin::Zeroed)
    }

    /// C17 7.22.3.5; recorded as a free of one block and an allocation of another.
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void, else { early::allocate(size) } {
        if block.is_null() {
            return record_block(next::realloc(block, size), size, Origin::Plain);
        }
        if let Some(early_size) = early::size_of_block(block) {
            let new_block = malloc(size);
            if !new_block.is_null() {
                let bytes = early_size.min(size);
                ptr::copy_nonoverlapping(block.cast::<u8>(), new_block.cast(), bytes);
            }
            return new_block;
        }
        // The birth is taken before the block is free, because another thread may then get its
        // address.
        let birth = births::take(block);
        let new_block = next::realloc(block, size);
        if new_block.is_null() && size != 0 {
            record::put_back(block, birth);
            return new_block;
        }
        record::record_free(birth);
        record_block(new_block, size, Origin::Resized)
    }

    /// C17 7.22.3.3; `errno` changes only if the allocator changes it.
    fn free(block: *mut c_void), else { } {
        if block.is_null() || early::size_of_block(block).is_some() {
            return;
        }
        record::record_free(births::take(block));
        next::free(block);
    }

    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void, else {
        early::out_of_memory()
    } {
        record_block(next::aligned_alloc(alignment, size), size, Origin::Aligned)
    }

    fn memalign(alignment: usize, size: usize) -> *mut c_void, else { early::out_of_memory() } {
        record_block(next::memalign(alignment, size), size, Origin::Aligned)
    }

    fn posix_memalign(
        result: *mut *mut c_void, alignment: usize, size: usize,
    ) -> c_int, else { libc::ENOMEM } {
        let error = next::posix_memalign(result, alignment, size);
        if error == 0 {
            record_block(result.read(), size, Origin::Aligned);
        }
        error
    }

    fn valloc(size: usize) -> *mut c_void, else { early::out_of_memory() } {
        record_block(next::valloc(size), size, Origin::Aligned)
    }

    fn pvalloc(size: usize) -> *mut c_void, else { early::out_of_memory() } {
        record_block(next::pvalloc(size), size, Origin::Aligned)
    }
}
