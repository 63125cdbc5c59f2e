//! One event that the kernel reports: `perf_event_open`, with samples into a ring.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::command;

/// `struct perf_event_attr` of Linux 4.8 (`PERF_ATTR_SIZE_VER5`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes {
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
    deepest_stack: u16,
    reserved: u16,
}

const ATTRIBUTES_BYTES: u32 = 112;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);

/// `PERF_SAMPLE_*`: what a sample holds.
pub mod sample {
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const CALL_CHAIN: u64 = 1 << 5;
    pub const PERIOD: u64 = 1 << 8;
    pub const RAW: u64 = 1 << 10;
    pub const USER_REGISTERS: u64 = 1 << 12;
    pub const USER_STACK: u64 = 1 << 13;
}

/// Bits of `perf_event_attr`.
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

/// What is to be reported.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// `PERF_TYPE_*`.
    pub class: u32,
    /// `PERF_COUNT_*`, or a tracepoint's number.
    pub event: u64,
    /// Of `flag`, beside what every event here has.
    pub flags: u64,
    /// Each so many events, or so many samples a second with `flag::FREQUENCY`; 0 samples none.
    pub period_or_frequency: u64,
    /// Of `sample`.
    pub sample_type: u64,
    /// Which user registers, as `perf_regs.h` numbers them.
    pub user_registers: u64,
    /// How much of the user stack.
    pub user_stack_bytes: u32,
}

/// Opens it for a process on one processor, to start at the process's exec and to go on in its
/// descendants.
///
/// # Errors
/// What `perf_event_open` says.
pub fn open(
    wanted: Wanted,
    pid: libc::pid_t,
    cpu: libc::c_int,
    wakeup: u32,
) -> io::Result<OwnedFd> {
    const NO_GROUP: RawFd = -1;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let attributes = Attributes {
        class: wanted.class,
        size: ATTRIBUTES_BYTES,
        event: wanted.event,
        period_or_frequency: wanted.period_or_frequency,
        sample_type: wanted.sample_type | sample::TID | sample::TIME,
        flags: as_bit_field(
            wanted.flags
                | flag::DISABLED
                | flag::INHERIT
                | flag::ENABLE_ON_EXEC
                | flag::EXCLUDE_HYPERVISOR
                | flag::WATERMARK
                | flag::IDENTIFY_ALL
                | flag::USE_CLOCK,
        ),
        wakeup_bytes: wakeup,
        user_registers: wanted.user_registers,
        user_stack_bytes: wanted.user_stack_bytes,
        clock: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    };
    // SAFETY: the attributes are complete, say their size, and outlive the call.
    command::owned(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            pid,
            cpu,
            NO_GROUP,
            CLOSE_ON_EXEC,
        )
    })
}

/// Sends an event's records into the ring of another one on the same processor.
///
/// # Errors
/// What the kernel says.
pub fn share_ring(event: &OwnedFd, with: &OwnedFd) -> io::Result<()> {
    const SET_OUTPUT: libc::c_ulong = 0x2405;
    // SAFETY: passes descriptors only.
    if unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, with.as_raw_fd()) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// What the event has counted, in the descendants that have ended, too.
///
/// # Errors
/// What reading says.
pub fn count(event: &OwnedFd) -> io::Result<u64> {
    let mut word = [0; 8];
    File::from(event.try_clone()?).read_exact(&mut word)?;
    Ok(u64::from_ne_bytes(word))
}

/// The kernel declares these flags as bits of C, which begin at the other end on some machines.
fn as_bit_field(flags: u64) -> u64 {
    if cfg!(target_endian = "big") {
        flags.reverse_bits()
    } else {
        flags
    }
}
