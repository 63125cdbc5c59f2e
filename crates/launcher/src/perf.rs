//! One event that the kernel counts for us: `perf_event_open`, as far as the launcher needs it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, RawFd};

/// What is counted, as the kernel names it (`perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// `PERF_TYPE_*`.
    pub class: u32,
    /// `PERF_COUNT_*`; for hardware events the upper half may name one kind of core.
    pub event: u64,
}

/// In which modes of the processor an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// In the kernel, too.
    All,
    /// Outside the kernel only, for which less is demanded.
    User,
}

/// An event that is counted in every process that this one starts, from its exec on, and in
/// all of its descendants; never in this process itself.
///
/// The kernel may exchange the events of two processes that have inherited the same ones, when
/// it switches from one to the other. An exchange between this process and a child that has not
/// executed yet would let the exec enable this process's event instead of the child's, and that
/// one for the last time: the next trials would count nothing (seen on 6.18). Processes are
/// exchangeable only if all events were inherited, so one that is not stands beside each.
pub struct Event {
    file: File,
    _not_inherited: File,
}

/// What was counted so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// How often it happened while it was counted; nanoseconds for clocks.
    pub value: u64,
    /// For how long the processes ran, over all of them.
    pub enabled_ns: u64,
    /// For how much of that it was counted; less where it takes turns with other events.
    pub running_ns: u64,
}

impl Count {
    /// What was counted since an earlier look.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(before.value),
            enabled_ns: self.enabled_ns.wrapping_sub(before.enabled_ns),
            running_ns: self.running_ns.wrapping_sub(before.running_ns),
        }
    }

    /// What the same event was on both kinds of core: each counts only on its own, while
    /// both are enabled all the time.
    #[must_use]
    pub fn on_either(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            enabled_ns: self.enabled_ns.max(other.enabled_ns),
            running_ns: self.running_ns + other.running_ns,
        }
    }
}

/// The first version of `struct perf_event_attr`, which every kernel takes.
#[repr(C)]
struct Attributes {
    class: u32,
    size: u32,
    event: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// `PERF_ATTR_SIZE_VER0`.
const ATTRIBUTES_BYTES: u32 = 64;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const WITH_TIMES: u64 = 0b11;
const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const ENABLE_ON_EXEC: u64 = 1 << 12;

impl Event {
    /// Starts to count in what this process will execute.
    ///
    /// # Errors
    /// What `perf_event_open` says.
    pub fn open(config: Config, modes: Modes) -> io::Result<Self> {
        Ok(Self {
            file: open(config, modes, INHERIT | ENABLE_ON_EXEC)?,
            _not_inherited: open(config, modes, 0)?,
        })
    }

    /// What was counted so far, in processes that have ended and in those that run.
    ///
    /// # Errors
    /// What reading says.
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
    const ANY_CPU: libc::c_int = -1;
    const NO_GROUP: RawFd = -1;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let kernel = match modes {
        Modes::All => 0,
        Modes::User => EXCLUDE_KERNEL,
    };
    let attributes = Attributes {
        class: config.class,
        size: ATTRIBUTES_BYTES,
        event: config.event,
        sample_period: 0,
        sample_type: 0,
        read_format: WITH_TIMES,
        flags: as_bit_field(DISABLED | EXCLUDE_HYPERVISOR | kernel | flags),
        wakeup_events: 0,
        breakpoint_type: 0,
        breakpoint_address: 0,
    };
    // SAFETY: the attributes are complete, say their size, and outlive the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            THIS_PROCESS,
            ANY_CPU,
            NO_GROUP,
            CLOSE_ON_EXEC,
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    let descriptor = RawFd::try_from(descriptor).map_err(io::Error::other)?;
    // SAFETY: the call returned a new descriptor that nobody else owns.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// The kernel declares these flags as bits of C, which begin at the other end on some machines.
fn as_bit_field(flags: u64) -> u64 {
    if cfg!(target_endian = "big") {
        flags.reverse_bits()
    } else {
        flags
    }
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
    fn what_no_kernel_knows_is_refused() {
        let config = Config {
            class: u32::MAX,
            event: 0,
        };
        assert!(Event::open(config, Modes::User).is_err());
    }
}
