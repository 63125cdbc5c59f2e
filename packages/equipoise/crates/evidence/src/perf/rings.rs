//! Events on every processor, each with the ring through which the kernel hands over its records.

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use equipoise_kernel::call::check;
use equipoise_kernel::clock::monotonic_ns;
use equipoise_kernel::cpus::parse_list;
use equipoise_kernel::perf::{self, EventOptions, flag, sample};

/// A ring for each processor; all events of a processor write to its ring.
pub struct Rings {
    of_processors: Vec<Ring>,
    others: Vec<OwnedFd>,
    scratch: Vec<u8>,
}

impl Rings {
    /// Opens every event on every processor, with rings of `all_bytes` bytes in total.
    pub fn open(events: &[EventOptions], pid: libc::pid_t, all_bytes: usize) -> io::Result<Self> {
        let processors = processors()?;
        let ring_bytes = share(all_bytes, processors.len());
        let wakeup = u32::try_from(ring_bytes / 8).unwrap_or(u32::MAX);
        let mut opened = Self {
            of_processors: Vec::new(),
            others: Vec::new(),
            scratch: Vec::new(),
        };
        for cpu in processors {
            let Some((first, rest)) = events.split_first() else {
                break;
            };
            let ring = match open(*first, pid, cpu, wakeup) {
                // A processor that is off.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                event => Ring::map(event?, ring_bytes)?,
            };
            for event in rest {
                let other = open(*event, pid, cpu, wakeup)?;
                share_ring(&other, &ring.event)?;
                opened.others.push(other);
            }
            opened.of_processors.push(ring);
        }
        Ok(opened)
    }

    /// Passes the new records on, ring by ring.
    pub fn drain(&mut self, mut take: impl FnMut(usize, &[u8])) {
        for (index, ring) in self.of_processors.iter_mut().enumerate() {
            ring.drain(&mut self.scratch, |record| take(index, record));
        }
    }

    /// Returns the count of the first event, on all processors and in all descendants.
    pub fn count(&self) -> io::Result<u64> {
        self.of_processors
            .iter()
            .map(|ring| count(&ring.event))
            .sum()
    }

    /// Returns the number of rings.
    pub fn len(&self) -> usize {
        self.of_processors.len()
    }

    /// Waits until a ring has filled or `process` has ended; returns whether it has ended.
    pub fn wait(&self, process: &OwnedFd) -> io::Result<bool> {
        /// Longest wait: names of descriptors and locks are looked up soon after their use.
        const TIMEOUT_MS: libc::c_int = 10;
        let polled = |descriptor: &OwnedFd| libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let events = self.of_processors.iter().map(|ring| &ring.event);
        let mut polled: Vec<_> = [process].into_iter().chain(events).map(polled).collect();
        let count = polled.len() as libc::nfds_t;
        let before = monotonic_ns();
        // SAFETY: the array is valid for its length.
        if unsafe { libc::poll(polled.as_mut_ptr(), count, TIMEOUT_MS) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let hung_up = polled[1..]
            .iter()
            .any(|ring| ring.revents & libc::POLLHUP != 0);
        // Rings without a writer are always ready.
        if hung_up && polled[0].revents == 0 && monotonic_ns() - before < 1_000_000 {
            // SAFETY: passes numbers only.
            unsafe { libc::poll(polled.as_mut_ptr(), 1, 10) };
        }
        Ok(polled[0].revents != 0)
    }
}

/// The largest power of two that each of `rings` rings can have.
fn share(all_bytes: usize, rings: usize) -> usize {
    const MINIMUM: usize = 1 << 17;
    let limit = (all_bytes / rings.max(1)).max(MINIMUM);
    1 << limit.ilog2()
}

/// Returns the numbers of the processors that are on.
fn processors() -> io::Result<Vec<libc::c_int>> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    Ok(parse_list(&list))
}

/// Opens an event for a process on one processor, to start at the exec of the process and to go on in
/// its descendants.
fn open(
    event: EventOptions,
    pid: libc::pid_t,
    cpu: libc::c_int,
    wakeup_bytes: u32,
) -> io::Result<OwnedFd> {
    let flags = flag::DISABLED
        | flag::INHERIT
        | flag::ENABLE_ON_EXEC
        | flag::EXCLUDE_HYPERVISOR
        | flag::WATERMARK
        | flag::IDENTIFY_ALL
        | flag::USE_CLOCK;
    let event = EventOptions {
        sample_type: event.sample_type | sample::TID | sample::TIME,
        flags: event.flags | flags,
        wakeup_bytes,
        clock: libc::CLOCK_MONOTONIC,
        ..event
    };
    perf::open(event, pid, cpu)
}

/// Sends the records of an event into the ring of another one on the same processor.
fn share_ring(event: &OwnedFd, with: &OwnedFd) -> io::Result<()> {
    const SET_OUTPUT: libc::c_ulong = 0x2405;
    // SAFETY: passes descriptors only.
    check(unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, with.as_raw_fd()) }).map(drop)
}

/// Returns the count of an event, including descendants that have ended.
fn count(event: &OwnedFd) -> io::Result<u64> {
    let mut word = [0; 8];
    File::from(event.try_clone()?).read_exact(&mut word)?;
    Ok(u64::from_ne_bytes(word))
}

/// Offsets of the positions of the writer and the reader in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const PAGE: usize = 4096;

/// An event's descriptor and the ring that it writes to.
struct Ring {
    /// Readable when the ring has filled up to the watermark.
    event: OwnedFd,
    memory: *mut c_void,
    data_bytes: usize,
}

impl Ring {
    /// Maps a ring of `data_bytes` bytes (a power of two), or a smaller one if the kernel allows no
    /// more.
    fn map(event: OwnedFd, data_bytes: usize) -> io::Result<Self> {
        let mut data_bytes = data_bytes;
        loop {
            // SAFETY: the kernel chooses an unused place.
            let memory = unsafe {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let (length, file) = (PAGE + data_bytes, event.as_raw_fd());
                libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, file, 0)
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

    /// Passes every whole record on, and frees their room.
    fn drain(&mut self, scratch: &mut Vec<u8>, mut take: impl FnMut(&[u8])) {
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
        unsafe { &*self.memory.byte_add(offset).cast::<AtomicU64>() }
    }

    fn copy(&self, at: u64, into: &mut [u8]) {
        let mask = self.data_bytes - 1;
        let start = usize::try_from(at).unwrap_or(0) & mask;
        let first = into.len().min(self.data_bytes - start);
        let (before, after) = into.split_at_mut(first);
        // SAFETY: both parts are inside the data, which the kernel does not write before our
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

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn rings_share_what_there_is_in_powers_of_two() {
        assert_eq!(share(32 << 20, 2), 16 << 20);
        assert_eq!(share(32 << 20, 3), 8 << 20);
        assert_eq!(share(32 << 20, 1000), 1 << 17);
    }
}
