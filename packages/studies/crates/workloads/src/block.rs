//! A block of memory from `malloc`, which any allocator may provide.

use std::ffi::c_void;
use std::hint::black_box;

use crate::problem::Problem;

/// Bytes of a block that are written before the block is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    None,
    /// One byte of each page, so that the kernel must provide the page.
    Page,
    All,
}

/// The error that malloc returned no memory for this number of bytes.
#[derive(Debug)]
pub struct OutOfMemory(pub usize);

impl From<OutOfMemory> for Problem {
    fn from(OutOfMemory(size): OutOfMemory) -> Self {
        Self::failure(format!("no memory for {size} bytes"))
    }
}

/// A block from the C library, freed when dropped.
pub struct Block {
    start: *mut c_void,
}

impl Block {
    /// Allocates a block and writes to it. `black_box` and the volatile writes prevent the compiler
    /// from removing malloc and free.
    pub fn new(size: usize, touch: Touch, page: usize) -> Result<Self, OutOfMemory> {
        // SAFETY: malloc may be called with any size.
        let start = black_box(unsafe { libc::malloc(size) });
        if start.is_null() {
            return Err(OutOfMemory(size));
        }
        match touch {
            Touch::None => {}
            Touch::Page => {
                for offset in (0..size).step_by(page) {
                    // SAFETY: `offset` is below `size`, so the byte is within the block.
                    unsafe { start.cast::<u8>().add(offset).write_volatile(1) };
                }
            }
            Touch::All => {
                // SAFETY: the block is `size` bytes long.
                unsafe { start.cast::<u8>().write_bytes(1, size) };
                black_box(start);
            }
        }
        Ok(Self { start })
    }

    pub fn address(&self) -> usize {
        self.start as usize
    }

    /// Writes one byte, at an offset within the block.
    pub fn touch_at(&self, offset: usize) {
        // SAFETY: the caller names a byte of the block.
        unsafe { self.start.cast::<u8>().add(offset).write_volatile(1) };
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: the pointer came from malloc and is freed once, here.
        unsafe { libc::free(black_box(self.start)) };
    }
}

pub fn page_size() -> usize {
    // SAFETY: sysconf reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}
