//! A file that names the library that runs, for whoever reads it after a crash.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

use equipoise_reporting::problem::Problem;

/// One byte of a file, which stays in the file if the process dies.
pub struct Running {
    byte: &'static AtomicU8,
}

impl Running {
    pub fn new(path: &Path) -> Result<Self, Problem> {
        let name = path.to_string_lossy();
        let as_problem = Problem::system(&name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(as_problem)?;
        file.set_len(1).map_err(as_problem)?;
        // SAFETY: a new mapping overlaps nothing. It stays until the process ends.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                1,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(as_problem(std::io::Error::last_os_error()));
        }
        // SAFETY: the byte is mapped for the rest of the process, and only used as an atomic.
        let byte = unsafe { AtomicU8::from_ptr(address.cast()) };
        Ok(Self { byte })
    }

    /// Stores the place of the library that runs now.
    pub fn set(&self, place: usize) {
        self.byte
            .store(u8::try_from(place).unwrap_or(u8::MAX), Ordering::Relaxed);
    }
}
