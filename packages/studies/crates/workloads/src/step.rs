//! Smallest size from which the allocator returns a freed block to the kernel at once.
//!
//! Each size is tried in a fresh copy of the process, as the first block after a small one: an
//! allocator may adapt to earlier frees, as glibc's threshold does.

use std::ffi::c_void;
use std::hint::black_box;

use libc::c_int;

use crate::block::{Block, Touch};

const SMALLEST: usize = 1024;
const KEPT: c_int = 0;
const RETURNED: c_int = 1;

/// Result of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The smallest size.
    At(usize),
    /// No size that was tried.
    Nowhere,
}

/// Finds the smallest size up to `largest`, to the byte; `None` if it cannot be determined.
pub fn smallest_returned(largest: usize, page: usize) -> Option<Step> {
    let mut kept = 0;
    let mut returned = SMALLEST.min(largest);
    while !is_returned(returned, page)? {
        if returned == largest {
            return Some(Step::Nowhere);
        }
        kept = returned;
        returned = returned.saturating_mul(2).min(largest);
    }
    while returned - kept > 1 {
        let middle = kept + (returned - kept) / 2;
        if is_returned(middle, page)? {
            returned = middle;
        } else {
            kept = middle;
        }
    }
    Some(Step::At(returned))
}

/// Whether a block of that size, the first of a copy of this process, is away once it is freed.
fn is_returned(size: usize, page: usize) -> Option<bool> {
    // SAFETY: the copy tries one block and ends by `_exit`: no cleanup of this process runs twice.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            let outcome = try_block(size, page);
            // SAFETY: ends the copy at once.
            unsafe { libc::_exit(outcome.unwrap_or(-1)) }
        }
        child => match equipoise_kernel::child::reap(child).ok()?.0.code()? {
            KEPT => Some(false),
            RETURNED => Some(true),
            _ => None,
        },
    }
}

fn try_block(size: usize, page: usize) -> Option<c_int> {
    let first = black_box(Block::new(16, Touch::All, page).ok()?);
    let block = Block::new(size, Touch::None, page).ok()?;
    let start = block.address();
    // The first page that is the block's alone; a small block shares its page with others.
    let mut address = start.next_multiple_of(page);
    if address + page > start + size {
        address = start / page * page;
    }
    block.touch_at(address.saturating_sub(start));
    drop(block);
    let mut resident = 0;
    // SAFETY: asks for one page; an address that is not mapped is an answer, not an access.
    let known = unsafe { libc::mincore(address as *mut c_void, page, &raw mut resident) };
    drop(first);
    let is_returned = known != 0 || resident & 1 == 0;
    Some(if is_returned { RETURNED } else { KEPT })
}
