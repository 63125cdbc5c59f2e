//! Large blocks, each in a separate mapping. Freeing the block returns the mapping to the kernel.
//!
//! Doug Lea's malloc 2.8.3 (2005) maps blocks from 256 KiB on; its Rust port does not. As in that
//! version, a mapping begins with an unused word, then the head, then the block. The head is the
//! length of the mapping, without flags.

use std::ptr::null_mut;

/// Smallest size of a mapped block.
pub const MIN_MAPPED_SIZE: usize = 256 * 1024;

const WORD: usize = size_of::<usize>();
/// Number of bytes before a block: the unused word, which aligns the block, and the head.
const BYTES_BEFORE_BLOCK: usize = 2 * WORD;
/// Flags in the head of a block that is not mapped. A mapped block has none of them.
const NOT_MAPPED_FLAGS: usize = 0b11;
const PAGE: usize = 4096;

/// Allocates a block of zeros; null if there is no memory.
pub fn allocate(size: usize) -> *mut u8 {
    let Some(length) = length_for(size) else {
        return null_mut();
    };
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let start = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(null_mut(), length, access, flags, -1, 0)
    };
    // SAFETY: the mapping is `length` bytes long.
    unsafe { with_head(start, length) }
}

/// Whether the block with this head has a mapping of its own.
pub fn is_mapped(head: usize) -> bool {
    head & NOT_MAPPED_FLAGS == 0
}

/// Returns the number of bytes that the owner of a mapped block may use.
pub fn usable_size(head: usize) -> usize {
    head - BYTES_BEFORE_BLOCK
}

/// Frees a mapped block.
///
/// # Safety
/// The block is live and mapped, and `head` is its head.
pub unsafe fn release(block: *mut u8, head: usize) {
    // SAFETY: the mapping begins two words before the block, and its length is the head.
    unsafe { libc::munmap(block.sub(BYTES_BEFORE_BLOCK).cast(), head) };
}

/// Resizes a mapped block, and returns its address. If that fails, returns null, and the block is
/// unchanged.
///
/// # Safety
/// The block is live and mapped, and `head` is its head.
pub unsafe fn resize(block: *mut u8, head: usize, size: usize) -> *mut u8 {
    let Some(length) = length_for(size) else {
        return null_mut();
    };
    if length == head {
        return block;
    }
    // SAFETY: the mapping begins two words before the block, and its length is the head.
    unsafe {
        let start = libc::mremap(
            block.sub(BYTES_BEFORE_BLOCK).cast(),
            head,
            length,
            libc::MREMAP_MAYMOVE,
        );
        with_head(start, length)
    }
}

/// Returns the length of a mapping for a block of `size` bytes, in whole pages.
fn length_for(size: usize) -> Option<usize> {
    size.checked_add(BYTES_BEFORE_BLOCK)?
        .checked_next_multiple_of(PAGE)
}

/// Writes the head into a mapping, and returns the block after it; null if there is no mapping.
///
/// # Safety
/// `start` is `MAP_FAILED` or a mapping of `length` bytes.
unsafe fn with_head(start: *mut libc::c_void, length: usize) -> *mut u8 {
    if start == libc::MAP_FAILED {
        return null_mut();
    }
    // SAFETY: a mapping is at least a page long, and begins at a page.
    unsafe {
        let block = start.cast::<u8>().add(BYTES_BEFORE_BLOCK);
        let head = block.sub(WORD).cast::<[u8; WORD]>();
        head.write(length.to_ne_bytes());
        block
    }
}
