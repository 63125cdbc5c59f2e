//! Opens and reads one event that the kernel counts in a trial and its descendants.

use std::fs::File;
use std::io::{self, Read};

use equipoise_kernel::perf::{self, EventOptions, flag};

/// The kernel's numbers for an event (`perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// `PERF_TYPE_*`.
    pub class: u32,
    /// `PERF_COUNT_*`. For hardware events the upper half may name one kind of core.
    pub event: u64,
}

/// Modes of the processor in which an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// Inside and outside the kernel.
    All,
    /// Outside the kernel only. This needs fewer permissions.
    User,
}

/// An event that the kernel counts in every started program, from its exec on, and in all its
/// descendants. It is never counted in the launcher itself.
///
/// The kernel may exchange the events of two processes if all of them were inherited. Then the exec
/// of a child would enable the launcher's event, and later trials would count nothing (seen on
/// 6.18). So each event has a partner that is not inherited.
pub struct Event {
    file: File,
    _partner: File,
}

/// A count since the event was opened.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of counted events; nanoseconds for clocks.
    pub value: u64,
    /// Running time of the processes, summed over all of them.
    pub enabled_ns: u64,
    /// Part of `enabled_ns` in which the event was counted. It is smaller if the processor has too
    /// few counters and events take turns.
    pub running_ns: u64,
}

impl Count {
    pub fn since(self, before: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(before.value),
            enabled_ns: self.enabled_ns.wrapping_sub(before.enabled_ns),
            running_ns: self.running_ns.wrapping_sub(before.running_ns),
        }
    }

    /// Returns the sum over two kinds of core. Both events are enabled all the time.
    pub fn add_other_cores(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            enabled_ns: self.enabled_ns.max(other.enabled_ns),
            running_ns: self.running_ns + other.running_ns,
        }
    }
}

impl Event {
    /// Opens an event that counts in every program that the launcher starts from now on.
    pub fn open(config: Config, modes: Modes) -> io::Result<Self> {
        Ok(Self {
            file: open(config, modes, flag::INHERIT | flag::ENABLE_ON_EXEC)?,
            _partner: open(config, modes, 0)?,
        })
    }

    /// Reads the count of all processes, ended and running.
    pub fn read(&self) -> io::Result<Count> {
        let mut fields = [[0; 8]; 3];
        (&self.file).read_exact(fields.as_flattened_mut())?;
        let [value, enabled_ns, running_ns] = fields.map(u64::from_ne_bytes);
        Ok(Count {
            value,
            enabled_ns,
            running_ns,
        })
    }
}

fn open(config: Config, modes: Modes, flags: u64) -> io::Result<File> {
    const THIS_PROCESS: libc::pid_t = 0;
    let mode_flags = match modes {
        Modes::All => 0,
        Modes::User => flag::EXCLUDE_KERNEL,
    };
    let options = EventOptions {
        class: config.class,
        event: config.event,
        read_format: perf::WITH_TIMES,
        flags: flag::DISABLED | flag::EXCLUDE_HYPERVISOR | mode_flags | flags,
        ..EventOptions::default()
    };
    perf::open(options, THIS_PROCESS, perf::ANY_CPU).map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_since_an_earlier_count_is_their_difference() {
        let count = |value, enabled_ns, running_ns| Count {
            value,
            enabled_ns,
            running_ns,
        };
        assert_eq!(count(9, 8, 7).since(count(1, 2, 3)), count(8, 6, 4));
    }

    #[test]
    fn the_counts_of_two_kinds_of_core_are_added() {
        let count = |value, running_ns| Count {
            value,
            enabled_ns: 100,
            running_ns,
        };
        assert_eq!(count(5, 60).add_other_cores(count(2, 40)), count(7, 100));
    }

    #[test]
    fn an_unknown_event_is_refused() {
        let config = Config {
            class: u32::MAX,
            event: 0,
        };
        assert!(Event::open(config, Modes::User).is_err());
    }
}
