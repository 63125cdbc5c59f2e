//! The quantities that can be sampled (time, page faults, waits), and the kernel's events for them.

use std::io;

use equipoise_kernel::perf::{EventOptions, SOFTWARE, flag, is_forbidden, sample};
use equipoise_reporting::problem::Problem;

use crate::perf::rings::Rings;

/// Bytes of all ring buffers together.
const RING_BYTES: usize = 16 << 20;
/// Largest number of bytes of a stack in a sample. The outer frames of deeper stacks are missing.
pub const STACK_BYTES: u32 = 16 << 10;

/// Registers that unwinding needs, in the order of their numbers (`asm/perf_regs.h`).
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8; // frame pointer, stack pointer, instruction
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32; // frame, link, stack, instruction

/// The quantity that is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Time on a processor; weights are seconds.
    Time,
    /// Page faults; weights are faults.
    Faults,
    /// Time in which a thread waits, without time in which it is ready to run; weights are seconds.
    Waits,
}

impl Sampling {
    /// Returns the name of this source of evidence in the document.
    pub fn source(self) -> &'static str {
        match self {
            Self::Time => "profile",
            Self::Faults => "page_faults",
            Self::Waits => "waits",
        }
    }

    /// Returns a remark if a large part of the total is missing in the samples.
    pub fn missing_remark(self, sampled: f64, total: f64) -> Option<String> {
        /// Fraction that may be missing by chance.
        const TOLERATED_FRACTION: f64 = 0.1;
        let missing = total - sampled;
        let short_processes = "some processes were too short to be sampled";
        let (digits, unit, reason) = match self {
            Self::Time => (3, "s", short_processes),
            Self::Faults => (0, "faults", short_processes),
            Self::Waits => (3, "s", "not every wait was sampled"),
        };
        (missing > TOLERATED_FRACTION * total).then(|| {
            format!(
                "the stacks of {missing:.digits$} of {total:.digits$} {unit} are lost: {reason}"
            )
        })
    }

    /// Returns the number of the kernel's event.
    fn event_number(self) -> u64 {
        const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
        const PERF_COUNT_SW_PAGE_FAULTS: u64 = 2;
        const PERF_COUNT_SW_CONTEXT_SWITCHES: u64 = 3;
        match self {
            Self::Time => PERF_COUNT_SW_CPU_CLOCK,
            Self::Faults => PERF_COUNT_SW_PAGE_FAULTS,
            Self::Waits => PERF_COUNT_SW_CONTEXT_SWITCHES,
        }
    }

    fn event(self, frequency: u64, further_flags: u64) -> EventOptions {
        let switches = match self {
            Self::Waits => flag::SWITCHES,
            Self::Time | Self::Faults => 0,
        };
        EventOptions {
            class: SOFTWARE,
            event: self.event_number(),
            flags: flag::FREQUENCY
                | flag::TASKS
                | flag::COMMANDS
                | flag::COMMANDS_AT_EXEC
                | flag::MAPPINGS
                | flag::EXCLUDE_USER_CALL_CHAIN
                | switches
                | further_flags,
            period_or_frequency: frequency,
            sample_type: sample::CALL_CHAIN
                | sample::PERIOD
                | sample::USER_REGISTERS
                | sample::USER_STACK,
            user_registers: REGISTERS,
            user_stack_bytes: STACK_BYTES,
            ..EventOptions::default()
        }
    }
}

/// Opens the events of a process. If the kernel may not be sampled, returns a remark, too.
pub fn open(
    sampling: Sampling,
    frequency: u64,
    pid: libc::pid_t,
) -> Result<(Rings, Option<String>), Problem> {
    const HINT: &str = "run as root, or set kernel.perf_event_paranoid to 1";
    let to_problem = |error: io::Error| {
        Problem::failure(format!(
            "perf_event_open: {error}; if sampling is forbidden (kernel.perf_event_paranoid is \
             above 2, or this is a container), {HINT}"
        ))
    };
    match Rings::open(&[sampling.event(frequency, 0)], pid, RING_BYTES) {
        Err(error) if is_forbidden(&error) => match sampling {
            Sampling::Waits => Err(Problem::failure(format!(
                "perf_event_open: {error}; waits need the right to sample the kernel: {HINT}"
            ))),
            Sampling::Time | Sampling::Faults => {
                let event = sampling.event(frequency, flag::EXCLUDE_KERNEL);
                let rings = Rings::open(&[event], pid, RING_BYTES).map_err(to_problem)?;
                let remark = format!("the kernel's own time and stacks are missing: {HINT}");
                Ok((rings, Some(remark)))
            }
        },
        rings => Ok((rings.map_err(to_problem)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::Sampling;

    #[test]
    fn a_large_missing_part_gives_a_remark() {
        assert_eq!(Sampling::Time.missing_remark(0.95, 1.0), None);
        assert_eq!(Sampling::Time.missing_remark(1.05, 1.0), None);
        let remark = Sampling::Time
            .missing_remark(0.2, 1.0)
            .expect("much is missing");
        assert!(
            remark.starts_with("the stacks of 0.800 of 1.000 s"),
            "{remark}"
        );
    }
}
