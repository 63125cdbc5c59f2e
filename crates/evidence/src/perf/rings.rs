//! The same events on every processor, each with its ring, for one command and its descendants.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::clock::monotonic_ns;
use crate::perf::event::{self, Wanted};
use crate::perf::ring::Ring;

/// A ring for each processor; the events beside the first write there, too.
pub struct Rings {
    of_processors: Vec<Ring>,
    others: Vec<OwnedFd>,
    scratch: Vec<u8>,
}

impl Rings {
    /// Opens every event on every processor, with rings of so many bytes together.
    ///
    /// # Errors
    /// What `perf_event_open` or `mmap` says.
    pub fn open(wanted: &[Wanted], pid: libc::pid_t, all_bytes: usize) -> io::Result<Self> {
        let processors = processors()?;
        let ring_bytes = share(all_bytes, processors.len());
        let wakeup = u32::try_from(ring_bytes / 8).unwrap_or(u32::MAX);
        let mut opened = Self {
            of_processors: Vec::new(),
            others: Vec::new(),
            scratch: Vec::new(),
        };
        for cpu in processors {
            let Some((first, rest)) = wanted.split_first() else {
                break;
            };
            let ring = match event::open(*first, pid, cpu, wakeup) {
                // A processor that is off.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                opened => Ring::map(opened?, ring_bytes)?,
            };
            for wanted in rest {
                let other = event::open(*wanted, pid, cpu, wakeup)?;
                event::share_ring(&other, ring.event())?;
                opened.others.push(other);
            }
            opened.of_processors.push(ring);
        }
        Ok(opened)
    }

    /// Hands over what has come, ring by ring.
    pub fn drain(&mut self, mut take: impl FnMut(usize, &[u8])) {
        for (index, ring) in self.of_processors.iter_mut().enumerate() {
            ring.drain(&mut self.scratch, |record| take(index, record));
        }
    }

    /// What the first event has counted, on all processors and in all descendants.
    ///
    /// # Errors
    /// What reading says.
    pub fn count(&self) -> io::Result<u64> {
        self.of_processors
            .iter()
            .map(|ring| event::count(ring.event()))
            .sum()
    }

    /// How many rings there are.
    pub fn len(&self) -> usize {
        self.of_processors.len()
    }

    /// Waits until a ring has filled or `process` has ended; says whether it has.
    ///
    /// # Errors
    /// What `poll` says.
    pub fn wait(&self, process: &OwnedFd) -> io::Result<bool> {
        /// Names of descriptors and locks are asked for soon after.
        const AT_MOST_MS: libc::c_int = 10;
        let polled = |descriptor: &OwnedFd| libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polled: Vec<_> = [polled(process)]
            .into_iter()
            .chain(self.of_processors.iter().map(|ring| polled(ring.event())))
            .collect();
        let count = polled.len() as libc::nfds_t;
        let before = monotonic_ns();
        // SAFETY: the array is valid for its length.
        if unsafe { libc::poll(polled.as_mut_ptr(), count, AT_MOST_MS) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let hung_up = polled[1..]
            .iter()
            .any(|ring| ring.revents & libc::POLLHUP != 0);
        // Rings that nobody is left to write to say so at once, for ever.
        if hung_up && polled[0].revents == 0 && monotonic_ns() - before < 1_000_000 {
            // SAFETY: passes numbers only.
            unsafe { libc::poll(polled.as_mut_ptr(), 1, 10) };
        }
        Ok(polled[0].revents != 0)
    }
}

/// A power of two that so many rings can have.
fn share(all_bytes: usize, rings: usize) -> usize {
    const LEAST: usize = 1 << 17;
    let most = (all_bytes / rings.max(1)).max(LEAST);
    1 << most.ilog2()
}

/// The numbers of the processors that are on.
fn processors() -> io::Result<Vec<libc::c_int>> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    Ok(numbers(list.trim()))
}

fn numbers(list: &str) -> Vec<libc::c_int> {
    list.split(',')
        .filter_map(|range| {
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            Some(low.parse().ok()?..=high.parse().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{numbers, share};

    #[test]
    fn rings_share_what_there_is_in_powers_of_two() {
        assert_eq!(share(32 << 20, 2), 16 << 20);
        assert_eq!(share(32 << 20, 3), 8 << 20);
        assert_eq!(share(32 << 20, 1000), 1 << 17);
    }

    #[test]
    fn a_list_of_processors_is_read() {
        assert_eq!(numbers("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(numbers("0"), [0]);
    }
}
