//! Stacks of a command and its descendants: where they spend time, where they fault, where they
//! wait.

mod fifos;
mod replay;
mod spool;

use std::ffi::OsString;
use std::io;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::clock::monotonic_ns;
use crate::command::{self, End};
use crate::perf::event::{Wanted, flag, sample};
use crate::perf::rings::Rings;
use crate::problem::Problem;
use crate::stacks::folded::Stacks;
use crate::stacks::map_file::{self, MapFiles};

use fifos::Fifos;
use replay::Replay;
use spool::{Cut, Spool};

/// On all processors together.
const RING_BYTES: usize = 16 << 20;
/// Deeper stacks are cut.
const STACK_BYTES: u32 = 16 << 10;
const SOFTWARE: u32 = 1;
/// Times of files are those of the last tick of the kernel.
const CLOCK_OF_FILES: Duration = Duration::from_millis(20);

/// Registers that unwinding needs, in the order of their numbers (`asm/perf_regs.h`).
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8; // frame pointer, stack pointer, instruction
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32; // frame, link, stack, instruction

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Time on a processor; weights are seconds.
    Time,
    /// Page faults; weights are faults.
    Faults,
    /// Time off the processor that was not taken from the thread; weights are seconds.
    Waits,
}

impl What {
    fn source(self) -> &'static str {
        match self {
            Self::Time => "profile",
            Self::Faults => "page_faults",
            Self::Waits => "waits",
        }
    }

    /// What samples have missed of all that was counted, in words, if it is much.
    fn missing(self, sampled: f64, total: f64) -> Option<String> {
        /// Samples are a matter of chance; so much may be missing anyway.
        const TOLERATED: f64 = 0.1;
        let missing = total - sampled;
        if missing <= TOLERATED * total {
            return None;
        }
        match self {
            Self::Time => Some(format!(
                "the stacks of {missing:.3} of {total:.3} s: in processes that were too short to \
                 be sampled"
            )),
            Self::Faults => Some(format!(
                "the stacks of {missing:.0} of {total:.0} faults: in processes that were too short \
                 to be sampled"
            )),
            Self::Waits => Some(format!(
                "the stacks of {missing:.3} of {total:.3} s: in waits that were not sampled"
            )),
        }
    }

    /// `PERF_COUNT_SW_*`.
    fn event(self) -> u64 {
        match self {
            Self::Time => 0,
            Self::Faults => 2,
            Self::Waits => 3,
        }
    }

    fn wanted(self, frequency: u64, modes: u64) -> Wanted {
        let switches = match self {
            Self::Waits => flag::SWITCHES,
            Self::Time | Self::Faults => 0,
        };
        Wanted {
            class: SOFTWARE,
            event: self.event(),
            flags: flag::FREQUENCY
                | flag::TASKS
                | flag::COMMANDS
                | flag::COMMANDS_AT_EXEC
                | flag::MAPPINGS
                | flag::EXCLUDE_USER_CALL_CHAIN
                | switches
                | modes,
            period_or_frequency: frequency,
            sample_type: sample::CALL_CHAIN
                | sample::PERIOD
                | sample::USER_REGISTERS
                | sample::USER_STACK,
            user_registers: REGISTERS,
            user_stack_bytes: STACK_BYTES,
        }
    }
}

/// The document.
#[derive(Debug, Serialize)]
pub struct Report {
    source: &'static str,
    version: u32,
    wall_s: f64,
    end: End,
    frequency: u64,
    samples: u64,
    /// All that happened, seen in a sample or not: seconds or faults.
    total: Option<f64>,
    #[serde(flatten)]
    stacks: Stacks,
    unseen: Vec<String>,
}

/// Runs the command and samples its stacks.
///
/// # Errors
/// The command cannot be executed, or the kernel forbids samples.
pub fn observe(what: What, frequency: u64, command: Vec<OsString>) -> Result<Report, Problem> {
    let refused = |error| Problem::system("the observed command", &error);
    let held = command::hold(command)?;
    let (mut rings, outside_kernel) = open(what, frequency, held.pid)?;
    let mut spool = Spool::new().map_err(|error| Problem::system("a temporary file", &error))?;
    let since = SystemTime::now() - CLOCK_OF_FILES;
    let started_ns = monotonic_ns();
    let running = held.start()?;
    let descriptor = running.descriptor().map_err(refused)?;
    let mut fifos = Fifos::new();
    while !rings.wait(&descriptor).map_err(refused)? {
        spool.fill(&mut rings, |record| fifos.note(record));
        fifos.read();
    }
    let wall_s = (monotonic_ns() - started_ns) as f64 * 1e-9;
    let map_files = MapFiles::new(since, map_file::user_of(running.pid));
    let end = running.wait().map_err(refused)?;
    spool.fill(&mut rings, |_| ());
    let counted = rings.count().ok();
    drop(rings);
    let mut replay = Replay::new(what, map_files);
    let cut = spool.replay(|ns, record| replay.take(ns, record))?;
    let cut = cut.map(|cut| cut_short(&cut, started_ns));
    let finished = replay.finish();
    let total = match what {
        What::Time => counted.map(|ns| ns as f64 * 1e-9),
        What::Faults => counted.map(|count| count as f64),
        What::Waits => Some(finished.waited_s),
    };
    let missing = total.and_then(|total| what.missing(finished.stacks.weight(), total));
    let mut unseen = finished.unseen;
    let of_a_part = cut.is_some() || outside_kernel.is_some();
    unseen.extend(cut.into_iter().chain(outside_kernel));
    // What is missing from a part is no wonder.
    unseen.extend(missing.filter(|_| !of_a_part));
    Ok(Report {
        source: what.source(),
        version: 1,
        wall_s,
        end,
        frequency,
        samples: finished.samples,
        total,
        stacks: finished.stacks,
        unseen,
    })
}

/// What is missing because the records found no room, in words.
fn cut_short(cut: &Cut, started_ns: u64) -> String {
    let seconds = cut.ns.saturating_sub(started_ns) as f64 * 1e-9;
    format!(
        "everything after the first {seconds:.3} s: {}: {}",
        spool::FILE,
        cut.error
    )
}

/// Without leave to look into the kernel, what can be seen from outside is taken, and said.
fn open(what: What, frequency: u64, pid: libc::pid_t) -> Result<(Rings, Option<String>), Problem> {
    const MEND: &str = "run as root, or set kernel.perf_event_paranoid to 1";
    let refused = |error: io::Error| {
        Problem::failure(format!(
            "perf_event_open: {error}; samples are forbidden where kernel.perf_event_paranoid is \
             above 2, and in many containers: {MEND}"
        ))
    };
    match Rings::open(&[what.wanted(frequency, 0)], pid, RING_BYTES) {
        Err(error) if is_forbidden(&error) => match what {
            What::Waits => Err(Problem::failure(format!(
                "perf_event_open: {error}; waits happen in the kernel: {MEND}"
            ))),
            What::Time | What::Faults => {
                let wanted = what.wanted(frequency, flag::EXCLUDE_KERNEL);
                let rings = Rings::open(&[wanted], pid, RING_BYTES).map_err(refused)?;
                let remark = format!("the kernel's own time and stacks: {MEND}");
                Ok((rings, Some(remark)))
            }
        },
        opened => Ok((opened.map_err(refused)?, None)),
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

#[cfg(test)]
mod tests {
    use super::What;

    #[test]
    fn what_samples_have_missed_is_told_if_it_is_much() {
        assert_eq!(What::Time.missing(0.95, 1.0), None);
        assert_eq!(What::Time.missing(1.05, 1.0), None);
        let told = What::Time.missing(0.2, 1.0).expect("much is missing");
        assert!(told.starts_with("the stacks of 0.800 of 1.000 s"), "{told}");
    }
}
