//! Memory from the kernel: mappings, pages, and the number of free bytes.

use std::fs::read_to_string;
use std::ops::Range;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::probe::Parameter;
use crate::system::{check_result, last_problem};

/// The `--size` of a probe that reads, writes or copies memory.
pub const MEMORY_SIZE: Parameter = Parameter {
    summary: "bytes of memory",
    default: 64 << 20,
    minimum: 64,
    maximum: 16 << 30,
};

/// Number of free bytes that a probe requires for each byte it uses, because other programs run.
const FREE_FACTOR: u64 = 4;

/// Returns a number of bytes as `usize`. If the machine has too little memory, the probe is reported
/// as unavailable.
pub fn check_free_memory(bytes: u64) -> Result<usize, Problem> {
    match free_bytes() {
        Some(free) if free < bytes.saturating_mul(FREE_FACTOR) => {
            Err(Problem::unavailable(format!(
                "it needs {FREE_FACTOR} times the {bytes} bytes that it uses, but only {free} \
                 are free; give a smaller --size"
            )))
        }
        _ => Ok(to_usize(bytes)),
    }
}

/// Returns the sum of the words modulo 2^64. The compiler can use vector instructions here.
pub fn wrapping_sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

/// Returns the free bytes of the machine or, if this is less, of the container; `None` if unknown.
fn free_bytes() -> Option<u64> {
    let machine = free_in_machine(&read_to_string("/proc/meminfo").ok()?)?;
    Some(free_in_container().map_or(machine, |container| container.min(machine)))
}

fn free_in_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the free bytes of the cgroup (version 2), if it has a limit.
fn free_in_container() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = Path::new("/sys/fs/cgroup").join(group);
    let read_number = |name| -> Option<u64> {
        let text = read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    Some(read_number("memory.max")?.saturating_sub(read_number("memory.current")?))
}

/// Private memory without a file, unmapped when dropped.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps memory. The kernel provides each page when it is touched.
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
            return Err(last_problem("mmap"));
        }
        NonNull::new(start.cast())
            .map(|start| Self { start, bytes })
            .ok_or_else(|| Problem::failure("mmap gave address 0"))
    }

    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Writes one byte to each page of a part, so that the kernel provides the page.
    ///
    /// # Panics
    /// The part is not within the mapping.
    #[inline]
    pub fn touch_pages(&self, page_bytes: usize, part: Range<usize>) {
        assert!(part.end <= self.bytes, "{part:?} is beyond {}", self.bytes);
        for offset in part.step_by(page_bytes) {
            // SAFETY: within the mapping. The compiler keeps volatile writes.
            unsafe { self.start.as_ptr().add(offset).write_volatile(1) };
        }
    }

    #[inline]
    pub fn give_back(self) -> Result<(), Problem> {
        let result = self.unmap();
        std::mem::forget(self);
        check_result("munmap", result, 0)
    }

    fn unmap(&self) -> libc::c_int {
        // SAFETY: exactly the mapping of `new`, and no reference to it remains.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.unmap();
    }
}

pub fn page_size() -> Result<usize, Problem> {
    // SAFETY: reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
        .map_err(|_| last_problem("sysconf(_SC_PAGESIZE)"))
}

pub fn disable_huge_pages() {
    // A kernel that refuses this request has no transparent huge pages.
    // SAFETY: passes numbers only.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_memory_is_read_in_bytes() {
        let meminfo = "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:    3 kB\n";
        assert_eq!(free_in_machine(meminfo), Some(3 * 1024));
        assert_eq!(free_in_machine("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn more_memory_than_the_machine_has_is_unavailable() {
        assert!(check_free_memory(1 << 60).unwrap_err().is_unavailable());
        assert_eq!(check_free_memory(4096).unwrap(), 4096);
    }
}
