//! One event that the kernel counts in a trial and its descendants.

use std::fs::File;
use std::io::{self, Read};

use equipoise_kernel::perf::{self, EventOptions, flag};

/// An event, as the kernel names it (`perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// `PERF_TYPE_*`.
    pub class: u32,
    /// `PERF_COUNT_*`; for hardware events the upper half may name one kind of core.
    pub event: u64,
}

/// Modes of the processor in which an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// Inside and outside the kernel.
    All,
    /// Outside the kernel only, which takes fewer rights.
    User,
}

/// An event that is counted in every process that this one starts, from its exec on, and in all of
/// its descendants; never in this process itself.
///
/// The kernel may exchange the events of two processes that have inherited the same ones, when
/// it switches from one to the other. An exchange between this process and a child that has not
/// executed yet would let the exec enable this process's event instead of the child's, and that
/// one for the last time: the next trials would count nothing (seen on 6.18). Processes are
/// exchangeable only if all events were inherited, so each has a partner that is not inherited.
pub struct Event {
    file: File,
    _not_inherited: File,
}

/// A count so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Number of events while they were counted; nanoseconds for clocks.
    pub value: u64,
    /// Time for which the processes ran, over all of them.
    pub enabled_ns: u64,
    /// Part of that time in which the event was counted; less where it takes turns with others.
    pub running_ns: u64,
}

impl Count {
    /// Returns the count since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(before.value),
            enabled_ns: self.enabled_ns.wrapping_sub(before.enabled_ns),
            running_ns: self.running_ns.wrapping_sub(before.running_ns),
        }
    }

    /// Returns the sum over two kinds of core: each counts on its own cores only, while both are enabled
    /// all the time.
    pub fn on_either(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            enabled_ns: self.enabled_ns.max(other.enabled_ns),
            running_ns: self.running_ns + other.running_ns,
        }
    }
}

impl Event {
    /// Counts in every program that this process will execute.
    pub fn open(config: Config, modes: Modes) -> io::Result<Self> {
        Ok(Self {
            file: open(config, modes, flag::INHERIT | flag::ENABLE_ON_EXEC)?,
            _not_inherited: open(config, modes, 0)?,
        })
    }

    /// Reads the count over ended and running processes.
    pub fn read(&self) -> io::Result<Count> {
        let mut words = [[0; 8]; 3];
        (&self.file).read_exact(words.as_flattened_mut())?;
        let [value, enabled_ns, running_ns] = words.map(u64::from_ne_bytes);
        Ok(Count {
            value,
            enabled_ns,
            running_ns,
        })
    }
}

fn open(config: Config, modes: Modes, flags: u64) -> io::Result<File> {
    const THIS_PROCESS: libc::pid_t = 0;
    let kernel = match modes {
        Modes::All => 0,
        Modes::User => flag::EXCLUDE_KERNEL,
    };
    let options = EventOptions {
        class: config.class,
        event: config.event,
        read_format: perf::WITH_TIMES,
        flags: flag::DISABLED | flag::EXCLUDE_HYPERVISOR | kernel | flags,
        ..EventOptions::default()
    };
    perf::open(options, THIS_PROCESS, perf::ANY_CPU).map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_since_an_earlier_one_is_their_difference() {
        let count = |value, enabled_ns, running_ns| Count {
            value,
            enabled_ns,
            running_ns,
        };
        assert_eq!(count(9, 8, 7).since(count(1, 2, 3)), count(8, 6, 4));
    }

    #[test]
    fn two_kinds_of_core_add_up_to_one_count() {
        let count = |value, running_ns| Count {
            value,
            enabled_ns: 100,
            running_ns,
        };
        assert_eq!(count(5, 60).on_either(count(2, 40)), count(7, 100));
    }

    #[test]
    fn an_event_that_no_kernel_knows_is_refused() {
        let config = Config {
            class: u32::MAX,
            event: 0,
        };
        assert!(Event::open(config, Modes::User).is_err());
    }
}
