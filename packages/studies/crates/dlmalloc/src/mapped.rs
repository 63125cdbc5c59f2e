//! Large blocks, each in a separate mapping that goes back to the kernel when it is freed.
//!
//! Doug Lea's `M_MMAP_THRESHOLD`, which the port lacks: 256 KiB in malloc 2.8.3, of the time of the
//! texts. As in that version, the word before the block holds the size of its chunk without the
//! flag that every other chunk in use carries; the word before that is not touched.

use std::ptr::null_mut;

/// Blocks from this size on are mapped.
pub const THRESHOLD: usize = 256 * 1024;

const WORD: usize = size_of::<usize>();
/// Bytes before the block, which keep its alignment.
const HEADER: usize = 2 * WORD;
/// Bits of the boundary tag of chunks in use; neither is set in a mapped block.
const IN_USE: usize = 0b11;
const PAGE: usize = 4096;

/// A new block of zeros, or null.
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
    unsafe { with_header(start, length) }
}

/// Whether a live block is a mapping of its own, by the word before it.
pub fn is_mapped(head: usize) -> bool {
    head & IN_USE == 0
}

/// Returns the bytes of a mapped block that its owner may use, by the word before it.
pub fn usable_size(head: usize) -> usize {
    head - HEADER
}

/// Gives the block back.
///
/// # Safety
/// The block is live and mapped, and `head` is the word before it.
pub unsafe fn release(block: *mut u8, head: usize) {
    // SAFETY: the mapping begins a header before the block and has the length of its head.
    unsafe { libc::munmap(block.sub(HEADER).cast(), head) };
}

/// The block with at least `size` bytes, perhaps elsewhere, or null with the block as it was.
///
/// # Safety
/// The block is live and mapped, and `head` is the word before it.
pub unsafe fn resize(block: *mut u8, head: usize, size: usize) -> *mut u8 {
    let Some(length) = length_for(size) else {
        return null_mut();
    };
    if length == head {
        return block;
    }
    // SAFETY: the mapping begins a header before the block and has the length of its head.
    unsafe {
        let start = libc::mremap(block.sub(HEADER).cast(), head, length, libc::MREMAP_MAYMOVE);
        with_header(start, length)
    }
}

/// Returns the bytes of whole pages for the header and `size` bytes.
fn length_for(size: usize) -> Option<usize> {
    size.checked_add(HEADER)?.checked_next_multiple_of(PAGE)
}

/// The block behind the header, which is written; null if there is no mapping.
///
/// # Safety
/// `start` is `MAP_FAILED` or a mapping of `length` bytes.
unsafe fn with_header(start: *mut libc::c_void, length: usize) -> *mut u8 {
    if start == libc::MAP_FAILED {
        return null_mut();
    }
    // SAFETY: a mapping is at least a page long and aligned to one.
    unsafe {
        let block = start.cast::<u8>().add(HEADER);
        let head = block.sub(WORD).cast::<[u8; WORD]>();
        head.write(length.to_ne_bytes());
        block
    }
}
