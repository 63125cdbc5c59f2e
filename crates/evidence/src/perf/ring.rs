//! The ring through which the kernel hands over records of one processor.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where `struct perf_event_mmap_page` has the kernel's and our position.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const PAGE: usize = 4096;

/// An event's descriptor and the ring that it writes to.
pub struct Ring {
    event: OwnedFd,
    memory: *mut c_void,
    data_bytes: usize,
}

impl Ring {
    /// Maps a ring of so many bytes (a power of two), or of less if the kernel allows no more.
    ///
    /// # Errors
    /// What `mmap` says of the smallest ring.
    pub fn map(event: OwnedFd, data_bytes: usize) -> io::Result<Self> {
        let mut data_bytes = data_bytes;
        loop {
            // SAFETY: the kernel chooses a place that nobody uses.
            let memory = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    PAGE + data_bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    event.as_raw_fd(),
                    0,
                )
            };
            if memory != libc::MAP_FAILED {
                return Ok(Self {
                    event,
                    memory,
                    data_bytes,
                });
            }
            let error = io::Error::last_os_error();
            data_bytes /= 2;
            if data_bytes < PAGE {
                return Err(error);
            }
        }
    }

    /// The descriptor, readable when the ring has filled up to the watermark.
    pub fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Hands over every whole record that is there, and gives their room back.
    pub fn drain(&mut self, scratch: &mut Vec<u8>, mut take: impl FnMut(&[u8])) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        while tail < head {
            /// `struct perf_event_header`: type, miscellaneous, size.
            const SIZE_AT: u64 = 6;
            let mut size = [0; 2];
            self.copy(tail + SIZE_AT, &mut size);
            let size = u16::from_ne_bytes(size);
            if size < 8 {
                break;
            }
            scratch.resize(usize::from(size), 0);
            self.copy(tail, scratch);
            take(scratch);
            tail += u64::from(size);
        }
        self.position(TAIL).store(tail, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the page is aligned, and has a number of 8 bytes there.
        unsafe {
            &*self
                .memory
                .cast::<AtomicU64>()
                .add(offset / size_of::<AtomicU64>())
        }
    }

    fn copy(&self, at: u64, into: &mut [u8]) {
        let mask = self.data_bytes - 1;
        let start = usize::try_from(at).unwrap_or(0) & mask;
        let first = into.len().min(self.data_bytes - start);
        let (before, after) = into.split_at_mut(first);
        // SAFETY: both parts lie inside the data, which the kernel does not write before our
        // position has passed it.
        unsafe {
            let data = self.memory.cast::<u8>().add(PAGE);
            ptr::copy_nonoverlapping(data.add(start), before.as_mut_ptr(), before.len());
            ptr::copy_nonoverlapping(data, after.as_mut_ptr(), after.len());
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone.
        unsafe { libc::munmap(self.memory, PAGE + self.data_bytes) };
    }
}
