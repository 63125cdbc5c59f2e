//! Memory from the kernel: mappings, pages, and how much is free.

use std::fs::read_to_string;
use std::ops::Range;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::probe::Parameter;
use crate::system::{expect, refused};

/// Parameter of the bytes that are read, written or copied at once.
pub const MEMORY: Parameter = Parameter {
    summary: "bytes of memory",
    default: 64 << 20,
    minimum: 64,
    maximum: 16 << 30,
};

/// Bytes that must be free for each byte that is used, because others share the machine.
const MARGIN: u64 = 4;

/// Returns the bytes as a size; unavailable if the machine has no room for them.
pub fn room_for(bytes: u64) -> Result<usize, Problem> {
    match free() {
        Some(free) if free < bytes.saturating_mul(MARGIN) => Err(Problem::unavailable(format!(
            "it works on {bytes} bytes and wants {MARGIN} times as many free, but {free} are; \
             take a smaller --size"
        ))),
        _ => Ok(to_usize(bytes)),
    }
}

/// Returns the sum, with as many parallel additions as the processor has.
pub fn added_up(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

/// Free bytes of the machine, or of its container if that has fewer; `None` if unknown.
fn free() -> Option<u64> {
    let machine = in_machine(&read_to_string("/proc/meminfo").ok()?)?;
    Some(in_container().map_or(machine, |container| container.min(machine)))
}

fn in_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the bytes that the cgroup of version 2 leaves, if it has a limit.
fn in_container() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = Path::new("/sys/fs/cgroup").join(group);
    let number = |name| -> Option<u64> {
        let text = read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

/// Private memory without a file, unmapped when dropped.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps memory, which the kernel provides when it is touched.
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

    /// Returns the start.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Writes one byte to each page of a part, so that the kernel provides it.
    ///
    /// # Panics
    /// The part is not within the mapping.
    #[inline]
    pub fn touch_each(&self, page: usize, part: Range<usize>) {
        assert!(part.end <= self.bytes, "{part:?} is beyond {}", self.bytes);
        for offset in part.step_by(page) {
            // SAFETY: within the mapping; volatile, so that it is not folded away.
            unsafe { self.start.as_ptr().add(offset).write_volatile(1) };
        }
    }

    /// Unmaps the memory.
    #[inline]
    pub fn give_back(self) -> Result<(), Problem> {
        let result = self.unmap();
        std::mem::forget(self);
        expect("munmap", result, 0)
    }

    fn unmap(&self) -> libc::c_int {
        // SAFETY: exactly the mapping that `new` made; no reference to it remains.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.unmap();
    }
}

/// Returns the bytes of a page of memory.
pub fn page_size() -> Result<usize, Problem> {
    // SAFETY: reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
        .map_err(|_| refused("sysconf(_SC_PAGESIZE)"))
}

/// Keeps huge pages out of the memory of this process.
pub fn without_huge_pages() {
    // A kernel without this request has no transparent huge pages.
    // SAFETY: passes numbers only.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_memory_is_read_in_bytes() {
        let meminfo = "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:    3 kB\n";
        assert_eq!(in_machine(meminfo), Some(3 * 1024));
        assert_eq!(in_machine("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn more_than_the_machine_has_is_unavailable() {
        assert!(room_for(1 << 60).unwrap_err().is_unavailable());
        assert_eq!(room_for(4096).unwrap(), 4096);
    }
}
