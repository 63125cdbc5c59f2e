//! Anonymous memory from the kernel.

use std::ops::Range;
use std::ptr::{NonNull, null_mut};

use equipoise_reporting::problem::Problem;

use crate::system::{expect, refused};

/// Private memory without a file, given back when dropped.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps so many bytes, which the kernel provides when they are touched.
    ///
    /// # Errors
    /// What `mmap` says.
    #[inline]
    pub fn new(bytes: usize) -> Result<Self, Problem> {
        // SAFETY: a new mapping at no particular address.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(refused("mmap"));
        }
        NonNull::new(start.cast())
            .map(|start| Self { start, bytes })
            .ok_or_else(|| Problem::failure("mmap gave address 0"))
    }

    /// Where it starts.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Writes one byte to each page of a part, and so has the kernel provide it.
    ///
    /// # Panics
    /// If the part is not within the mapping.
    #[inline]
    pub fn touch_each(&self, page: usize, part: Range<usize>) {
        assert!(part.end <= self.bytes, "{part:?} is beyond {}", self.bytes);
        for offset in part.step_by(page) {
            // SAFETY: within the mapping; volatile, so that it is not folded away.
            unsafe { self.start.as_ptr().add(offset).write_volatile(1) };
        }
    }

    /// Gives it back.
    ///
    /// # Errors
    /// What `munmap` says.
    #[inline]
    pub fn give_back(self) -> Result<(), Problem> {
        let result = self.unmap();
        std::mem::forget(self);
        expect("munmap", result, 0)
    }

    fn unmap(&self) -> libc::c_int {
        // SAFETY: exactly the mapping that `new` made; nobody can refer to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.unmap();
    }
}

/// Bytes of a page of memory.
///
/// # Errors
/// What `sysconf` says.
pub fn page_size() -> Result<usize, Problem> {
    // SAFETY: reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
        .map_err(|_| refused("sysconf(_SC_PAGESIZE)"))
}

/// Keeps huge pages out of this process's memory.
pub fn without_huge_pages() {
    // A kernel that does not know the request has no huge pages of its own accord.
    // SAFETY: passes numbers only.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}
