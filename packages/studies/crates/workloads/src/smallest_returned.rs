//! Finds the smallest block that the allocator returns to the kernel as soon as the block is freed.
//!
//! An allocator may adapt to earlier frees, as glibc's does. So each size is tried in a new copy of
//! the process, after only one small block.

use std::ffi::c_void;
use std::hint::black_box;

use libc::c_int;

use crate::block::{Block, Touch};

/// Size of the first block that is tried, in bytes.
const FIRST_SIZE: usize = 1024;
/// Exit status of a copy whose allocator kept the freed block.
const KEPT: c_int = 0;
/// Exit status of a copy whose allocator returned the freed block to the kernel.
const RETURNED: c_int = 1;

/// The smallest block that went back to the kernel, in bytes, if any did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchResult {
    Found(usize),
    NotFound,
}

/// Searches for the smallest returned size, to the byte, up to `largest`; `None` if a trial failed.
pub fn smallest_returned(largest: usize, page: usize) -> Option<SearchResult> {
    let mut kept_size = 0;
    let mut returned_size = FIRST_SIZE.min(largest);
    while !is_returned(returned_size, page)? {
        if returned_size == largest {
            return Some(SearchResult::NotFound);
        }
        kept_size = returned_size;
        returned_size = returned_size.saturating_mul(2).min(largest);
    }
    while returned_size - kept_size > 1 {
        let middle = kept_size + (returned_size - kept_size) / 2;
        if is_returned(middle, page)? {
            returned_size = middle;
        } else {
            kept_size = middle;
        }
    }
    Some(SearchResult::Found(returned_size))
}

/// Whether the allocator returns a freed block of this size to the kernel; `None` if unknown. A
/// copy of this process frees such a block.
fn is_returned(size: usize, page: usize) -> Option<bool> {
    // SAFETY: the copy tries one block and ends by `_exit`, so no cleanup runs twice.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            let status = free_and_check(size, page);
            // SAFETY: ends the copy at once.
            unsafe { libc::_exit(status.unwrap_or(-1)) }
        }
        child => match equipoise_kernel::child::reap(child).ok()?.0.code()? {
            KEPT => Some(false),
            RETURNED => Some(true),
            _ => None,
        },
    }
}

/// Allocates and frees a block; returns `KEPT` or `RETURNED`.
fn free_and_check(size: usize, page: usize) -> Option<c_int> {
    let small_block = black_box(Block::new(16, Touch::All, page).ok()?);
    let block = Block::new(size, Touch::None, page).ok()?;
    let start = block.address();
    // The first page that only this block uses; a small block has no such page.
    let mut address = start.next_multiple_of(page);
    if address + page > start + size {
        address = start / page * page;
    }
    block.touch_at(address.saturating_sub(start));
    drop(block);
    let mut page_state = 0;
    // SAFETY: writes the state of one page. The call fails if the address is not mapped.
    let status = unsafe { libc::mincore(address as *mut c_void, page, &raw mut page_state) };
    drop(small_block);
    let is_returned = status != 0 || page_state & 1 == 0;
    Some(if is_returned { RETURNED } else { KEPT })
}
