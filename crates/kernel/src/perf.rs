//! Opens events with `perf_event_open(2)`: counters and samples of a process.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use crate::call::owned;

/// `PERF_TYPE_HARDWARE`.
pub const HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
pub const SOFTWARE: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
pub const TRACEPOINT: u32 = 2;

/// Bits that select the contents of a sample (`PERF_SAMPLE_*`).
#[allow(missing_docs)]
pub mod sample {
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const CALL_CHAIN: u64 = 1 << 5;
    pub const PERIOD: u64 = 1 << 8;
    pub const RAW: u64 = 1 << 10;
    pub const USER_REGISTERS: u64 = 1 << 12;
    pub const USER_STACK: u64 = 1 << 13;
}

/// Bits of the flags of `perf_event_attr`. The kernel calls `COMMANDS` `comm`, `TASKS` `task`,
/// `IDENTIFY_ALL` `sample_id_all`, `MAPPINGS` `mmap` and `mmap2`, `SWITCHES` `context_switch`.
#[allow(missing_docs)]
pub mod flag {
    pub const DISABLED: u64 = 1 << 0;
    pub const INHERIT: u64 = 1 << 1;
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub const COMMANDS: u64 = 1 << 9;
    pub const FREQUENCY: u64 = 1 << 10;
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub const TASKS: u64 = 1 << 13;
    pub const WATERMARK: u64 = 1 << 14;
    pub const IDENTIFY_ALL: u64 = 1 << 18;
    pub const EXCLUDE_USER_CALL_CHAIN: u64 = 1 << 22;
    pub const MAPPINGS: u64 = 1 << 8 | 1 << 23;
    pub const COMMANDS_AT_EXEC: u64 = 1 << 24;
    pub const USE_CLOCK: u64 = 1 << 25;
    pub const SWITCHES: u64 = 1 << 26;
}

/// Read format with times: `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
pub const WITH_TIMES: u64 = 0b11;

/// The event to open and the contents of its records; a field that is 0 is not used.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventOptions {
    /// `PERF_TYPE_*`.
    pub class: u32,
    /// `PERF_COUNT_*`, or the number of a tracepoint.
    pub event: u64,
    /// Events per sample or, with `flag::FREQUENCY`, samples per second; 0 for no samples.
    pub period_or_frequency: u64,
    /// Bits of `sample`.
    pub sample_type: u64,
    /// `PERF_FORMAT_*`.
    pub read_format: u64,
    /// Bits of `flag`.
    pub flags: u64,
    /// With `flag::WATERMARK`: number of bytes in the ring buffer at which the reader wakes.
    pub wakeup_bytes: u32,
    /// Bits that select the user registers of a sample, as `perf_regs.h` numbers them.
    pub user_registers: u64,
    /// Number of bytes of the user stack in a sample.
    pub user_stack_bytes: u32,
    /// With `flag::USE_CLOCK`: clock of the times in the records.
    pub clock: i32,
}

/// `struct perf_event_attr` of Linux 4.8 (`PERF_ATTR_SIZE_VER5`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    class: u32,
    size: u32,
    event: u64,
    period_or_frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_bytes: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    user_registers: u64,
    user_stack_bytes: u32,
    clock: i32,
    interrupt_registers: u64,
    auxiliary_watermark: u32,
    max_stack: u16,
    reserved: u16,
}

/// Size of `Attributes`, which the kernel checks.
const ATTRIBUTES_BYTES: u32 = 112;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);

/// Number for [`open`] that means all CPUs.
pub const ANY_CPU: libc::c_int = -1;

/// Opens an event of a process (0 for this process) on a CPU.
///
/// # Errors
/// The error of `perf_event_open`.
pub fn open(options: EventOptions, pid: libc::pid_t, cpu: libc::c_int) -> io::Result<OwnedFd> {
    const NO_GROUP: RawFd = -1;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let attributes = Attributes {
        class: options.class,
        size: ATTRIBUTES_BYTES,
        event: options.event,
        period_or_frequency: options.period_or_frequency,
        sample_type: options.sample_type,
        read_format: options.read_format,
        flags: as_bit_field(options.flags),
        wakeup_bytes: options.wakeup_bytes,
        user_registers: options.user_registers,
        user_stack_bytes: options.user_stack_bytes,
        clock: options.clock,
        ..Attributes::default()
    };
    // SAFETY: the attributes are complete, state their size, and outlive the call. The call returns
    // a new descriptor.
    unsafe {
        owned(libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            pid,
            cpu,
            NO_GROUP,
            CLOSE_ON_EXEC,
        ))
    }
}

/// Whether an event was refused because of missing permissions.
#[must_use]
pub fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// Returns flags as a C bit field, which starts with the highest bit on big-endian machines.
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
    fn an_unknown_event_is_refused() {
        let unknown = EventOptions {
            class: u32::MAX,
            ..EventOptions::default()
        };
        assert!(open(unknown, 0, ANY_CPU).is_err());
    }
}
