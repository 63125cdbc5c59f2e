//! Opens kernel events on every processor, and reads their records from ring buffers.

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

/// Smallest number of bytes of a ring.
pub const MIN_RING_BYTES: usize = 1 << 17;

/// A ring buffer for each processor. All events of a processor write to its ring.
pub struct Rings {
    by_processor: Vec<Ring>,
    /// All events but the first of each processor.
    further_events: Vec<OwnedFd>,
    record_buffer: Vec<u8>,
}

impl Rings {
    /// Opens every event on every processor, with rings of `all_bytes` bytes in total.
    pub fn open(events: &[EventOptions], pid: libc::pid_t, all_bytes: usize) -> io::Result<Self> {
        let processors = processors()?;
        let ring_bytes = bytes_per_ring(all_bytes, processors.len());
        let wakeup_bytes = u32::try_from(ring_bytes / 8).unwrap_or(u32::MAX);
        let mut rings = Self {
            by_processor: Vec::new(),
            further_events: Vec::new(),
            record_buffer: Vec::new(),
        };
        for cpu in processors {
            let Some((first, rest)) = events.split_first() else {
                break;
            };
            let ring = match open(*first, pid, cpu, wakeup_bytes) {
                // The processor was switched off.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                event => Ring::map(event?, ring_bytes)?,
            };
            for event in rest {
                let further_event = open(*event, pid, cpu, wakeup_bytes)?;
                share_ring(&further_event, &ring.event)?;
                rings.further_events.push(further_event);
            }
            rings.by_processor.push(ring);
        }
        Ok(rings)
    }

    /// Passes the new records to `handle`, ring by ring.
    pub fn drain(&mut self, mut handle: impl FnMut(usize, &[u8])) {
        for (index, ring) in self.by_processor.iter_mut().enumerate() {
            ring.drain(&mut self.record_buffer, |record| handle(index, record));
        }
    }

    /// Returns the count of the first event, over all processors and all descendants.
    pub fn count(&self) -> io::Result<u64> {
        self.by_processor
            .iter()
            .map(|ring| count(&ring.event))
            .sum()
    }

    pub fn len(&self) -> usize {
        self.by_processor.len()
    }

    /// Waits for records or the end of `process`; returns whether the process has ended.
    pub fn wait(&self, process: &OwnedFd) -> io::Result<bool> {
        /// Longest wait. Names of descriptors and locks must be looked up soon after their use.
        const TIMEOUT_MS: libc::c_int = 10;
        /// Nanoseconds below which a call of `poll` has not waited.
        const IMMEDIATE_NS: u64 = 1_000_000;
        let to_poll = |descriptor: &OwnedFd| libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let events = self.by_processor.iter().map(|ring| &ring.event);
        let mut polled: Vec<_> = [process].into_iter().chain(events).map(to_poll).collect();
        let count = polled.len() as libc::nfds_t;
        let polled_ns = monotonic_ns();
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
        // `poll` returns at once if the processes of a ring have ended. Then wait for `process`.
        if hung_up && polled[0].revents == 0 && monotonic_ns() - polled_ns < IMMEDIATE_NS {
            // SAFETY: the array is valid for one item.
            unsafe { libc::poll(polled.as_mut_ptr(), 1, TIMEOUT_MS) };
        }
        Ok(polled[0].revents != 0)
    }
}

/// Returns the bytes of each of `rings` rings: the largest power of two within `all_bytes`.
fn bytes_per_ring(all_bytes: usize, rings: usize) -> usize {
    let limit = (all_bytes / rings.max(1)).max(MIN_RING_BYTES);
    1 << limit.ilog2()
}

/// Returns the numbers of the processors that are switched on.
fn processors() -> io::Result<Vec<libc::c_int>> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    Ok(parse_list(&list))
}

/// Opens an event on one processor. It starts at the next exec of the process.
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

/// Sends the records of an event into the ring of another event on the same processor.
fn share_ring(event: &OwnedFd, owner: &OwnedFd) -> io::Result<()> {
    const PERF_EVENT_IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
    let (event, owner) = (event.as_raw_fd(), owner.as_raw_fd());
    // SAFETY: passes descriptors only.
    check(unsafe { libc::ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, owner) }).map(drop)
}

/// Returns the count of an event, including descendants that have ended.
fn count(event: &OwnedFd) -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::from(event.try_clone()?).read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Offsets in `struct perf_event_mmap_page`: the positions of the writer and of the reader.
const HEAD_OFFSET: usize = 1024;
const TAIL_OFFSET: usize = 1032;
const PAGE_BYTES: usize = 4096;

/// An event's descriptor and the ring that it writes to.
struct Ring {
    /// Descriptor, which is readable when the ring is full up to the watermark.
    event: OwnedFd,
    /// A page with both positions, and then the data.
    memory: *mut c_void,
    data_bytes: usize,
}

impl Ring {
    /// Maps a ring of `data_bytes` bytes (a power of two), or fewer bytes if the kernel refuses.
    fn map(event: OwnedFd, data_bytes: usize) -> io::Result<Self> {
        let mut data_bytes = data_bytes;
        loop {
            // SAFETY: the kernel chooses an unused address.
            let memory = unsafe {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let (length, file) = (PAGE_BYTES + data_bytes, event.as_raw_fd());
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
            if data_bytes < PAGE_BYTES {
                return Err(error);
            }
        }
    }

    /// Passes every complete record to `handle`, and frees the space of the records.
    fn drain(&mut self, record_buffer: &mut Vec<u8>, mut handle: impl FnMut(&[u8])) {
        let head = self.position(HEAD_OFFSET).load(Ordering::Acquire);
        let mut tail = self.position(TAIL_OFFSET).load(Ordering::Relaxed);
        while tail < head {
            /// Offset of a record's size in its header (`struct perf_event_header`).
            const SIZE_OFFSET: u64 = 6;
            const HEADER_BYTES: u16 = 8;
            let mut size = [0; 2];
            self.copy(tail + SIZE_OFFSET, &mut size);
            let size = u16::from_ne_bytes(size);
            if size < HEADER_BYTES {
                break;
            }
            record_buffer.resize(usize::from(size), 0);
            self.copy(tail, record_buffer);
            handle(record_buffer);
            tail += u64::from(size);
        }
        self.position(TAIL_OFFSET).store(tail, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the page is aligned, and has a number of 8 bytes there.
        unsafe { &*self.memory.byte_add(offset).cast::<AtomicU64>() }
    }

    fn copy(&self, position: u64, target: &mut [u8]) {
        let mask = self.data_bytes - 1;
        let start = usize::try_from(position).unwrap_or(0) & mask;
        let first = target.len().min(self.data_bytes - start);
        let (first_part, second_part) = target.split_at_mut(first);
        // SAFETY: both parts are inside the data. The kernel writes there only after we pass them.
        unsafe {
            let data = self.memory.cast::<u8>().add(PAGE_BYTES);
            ptr::copy_nonoverlapping(data.add(start), first_part.as_mut_ptr(), first_part.len());
            ptr::copy_nonoverlapping(data, second_part.as_mut_ptr(), second_part.len());
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone.
        unsafe { libc::munmap(self.memory, PAGE_BYTES + self.data_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::bytes_per_ring;

    #[test]
    fn rings_have_equal_sizes_that_are_powers_of_two() {
        assert_eq!(bytes_per_ring(32 << 20, 2), 16 << 20);
        assert_eq!(bytes_per_ring(32 << 20, 3), 8 << 20);
        assert_eq!(bytes_per_ring(32 << 20, 1000), 1 << 17);
    }
}
