//! Large blocks, each in a separate mapping that is returned to the kernel when the block is freed.
//!
//! The Rust port of Doug Lea's malloc lacks his `M_MMAP_THRESHOLD`, which is 256 KiB in malloc 2.8.3
//! (2005). As in that version, the word before the block (its head) contains the length of the
//! mapping without the flags that every other chunk in use has; the word before that is unused.

use std::ptr::null_mut;

/// Blocks from this size on are mapped.
pub const THRESHOLD: usize = 256 * 1024;

const WORD: usize = size_of::<usize>();
/// Number of bytes before a block; two words keep the alignment of the block.
const HEADER_BYTES: usize = 2 * WORD;
/// Flags in the head of chunks in use; a mapped block has neither.
const IN_USE: usize = 0b11;
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
    unsafe { with_header(start, length) }
}

/// Whether the block with this head is a mapping of its own.
pub fn is_mapped(head: usize) -> bool {
    head & IN_USE == 0
}

/// Returns the number of bytes that the owner of a mapped block may use.
pub fn usable_size(head: usize) -> usize {
    head - HEADER_BYTES
}

/// Frees a mapped block.
///
/// # Safety
/// The block is live and mapped, and `head` is the word before it.
pub unsafe fn release(block: *mut u8, head: usize) {
    // SAFETY: the mapping begins a header before the block and has the length of its head.
    unsafe { libc::munmap(block.sub(HEADER_BYTES).cast(), head) };
}

/// Resizes a mapped block, and returns its address; null, with the block unchanged, on failure.
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
        let start = libc::mremap(
            block.sub(HEADER_BYTES).cast(),
            head,
            length,
            libc::MREMAP_MAYMOVE,
        );
        with_header(start, length)
    }
}

/// Returns the length of a mapping for the header and `size` bytes: whole pages.
fn length_for(size: usize) -> Option<usize> {
    size.checked_add(HEADER_BYTES)?
        .checked_next_multiple_of(PAGE)
}

/// Writes the header of a new mapping, and returns the block after it; null if there is no mapping.
///
/// # Safety
/// `start` is `MAP_FAILED` or a mapping of `length` bytes.
unsafe fn with_header(start: *mut libc::c_void, length: usize) -> *mut u8 {
    if start == libc::MAP_FAILED {
        return null_mut();
    }
    // SAFETY: a mapping is at least a page long and aligned to one.
    unsafe {
        let block = start.cast::<u8>().add(HEADER_BYTES);
        let head = block.sub(WORD).cast::<[u8; WORD]>();
        head.write(length.to_ne_bytes());
        block
    }
}
