//! Probe `context_switch`: a switch from one process to the next, in a ring of pipes on one CPU.
//!
//! A token goes round the ring. A process that receives the token visits its own working set and
//! sends the token to the next process. So a hop is a write, a switch, a read and a visit. Before
//! the measurement, this process alone does the write, the read and the visit. It uses a pipe that
//! is never empty. The median of this time is subtracted. The rest is the time of the switch and of
//! cold caches.

use std::hint::black_box;
use std::time::{Duration, Instant};

use equipoise_reporting::problem::Problem;

use crate::batches::{subtract, time_to_subtract};
use crate::channel::End;
use crate::child::Helper;
use crate::cpus::{current_cpu, pin_thread, side_cpus};
use crate::probe::{Class, OpenProbe, Operation, Parameter, Placement, Probe, ProbeOptions, Row};
use crate::system::{problem_of, wrong_result};

pub const CONTEXT_SWITCH: Probe = Probe {
    name: "context_switch",
    summary: "a switch to the next process of a ring on one CPU, each with a working set",
    placements: &[Placement::SameCpu],
    size: Some(Parameter {
        summary: "bytes that each process visits when its turn comes",
        default: 0,
        minimum: 0,
        maximum: 1 << 30,
    }),
    count: Some(Parameter {
        summary: "processes in the ring",
        default: 2,
        minimum: 2,
        maximum: 256,
    }),
    rows: &[
        row("_2_processes_0k", 2, 0),
        row("_2_processes_16k", 2, 16 << 10),
        row("_2_processes_64k", 2, 64 << 10),
        row("_8_processes_0k", 8, 0),
        row("_8_processes_16k", 8, 16 << 10),
        row("_8_processes_64k", 8, 64 << 10),
        row("_16_processes_0k", 16, 0),
        row("_16_processes_16k", 16, 16 << 10),
        row("_16_processes_64k", 16, 64 << 10),
    ],
    ..Probe::latency(Class::ContextSwitch, open)
};

const fn row(name: &'static str, processes: u64, bytes: u64) -> Row {
    Row::named(name).of_count(processes).of_size(bytes)
}

fn open(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let cpus = side_cpus(options.placement)?;
    pin_thread(cpus.measured)?;
    let mut ends = ring(options.count)?;
    let first = ends.remove(0);
    let size = options.size;
    let mut helpers = ends
        .into_iter()
        .map(|end| Helper::start(cpus.other, move || pass_on(end, size)))
        .collect::<Result<Vec<_>, _>>()?;
    let helper_cpus: Vec<_> = helpers
        .iter()
        .map(|helper| helper.cpu.to_string())
        .collect();
    helpers.reverse();
    let mut working_set = WorkingSet::new(size);
    let alone_s = time_alone(&mut working_set)?;
    let ring = Ring {
        helpers,
        first,
        working_set,
        alone_s,
    };
    Ok(OpenProbe::latency(ring)
        .with_fact("cpu", current_cpu()?.to_string())
        .with_fact("helper_cpu", helper_cpus.join(" "))
        .with_fact("subtracted_s", alone_s.to_string()))
}

/// Measures the seconds of a hop in one process, which needs no switch.
fn time_alone(working_set: &mut WorkingSet) -> Result<f64, Problem> {
    let mut end = ring(1)?.remove(0);
    // Without other processes, a lap is one hop.
    let mut hops = |count| go_round(&mut end, working_set, count, 0);
    time_to_subtract(&mut hops)
}

/// The ring, with the end and the working set of this process. A helper reports an error if the
/// process before it in the ring ends first. So the last helper of the ring is dropped first, and
/// this end closes last.
struct Ring {
    helpers: Vec<Helper>,
    first: End,
    working_set: WorkingSet,
    /// Seconds of a hop without a switch.
    alone_s: f64,
}

impl Operation for Ring {
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem> {
        let others = self.helpers.len() as u64;
        let laps = count.div_ceil(others + 1);
        let elapsed = go_round(&mut self.first, &mut self.working_set, laps, others)?;
        let hops = laps * (others + 1);
        let switch_time = subtract(elapsed, hops, self.alone_s);
        Ok(switch_time.mul_f64(count as f64 / hops as f64))
    }
}

/// Sends a token round the ring `laps` times. Each helper adds 1 to the token.
fn go_round(
    end: &mut End,
    working_set: &mut WorkingSet,
    laps: u64,
    others: u64,
) -> Result<Duration, Problem> {
    let added = u8::try_from(others).expect("a ring has at most 256 processes");
    let mut token = 0_u8;
    let started = Instant::now();
    for _ in 0..laps {
        end.send(token)?;
        let expected = token.wrapping_add(added);
        token = end.receive()?;
        if token != expected {
            return Err(wrong_result("the ring", token, expected));
        }
        working_set.visit();
    }
    Ok(started.elapsed())
}

/// Does the work of a helper: receives a token, visits the working set, sends the token.
fn pass_on(mut end: End, size: u64) -> Result<(), Problem> {
    let mut working_set = WorkingSet::new(size);
    loop {
        let token = end.receive()?;
        working_set.visit();
        end.send(token.wrapping_add(1))?;
    }
}

/// Returns an end for each process of a ring: it writes to the pipe that the next process reads.
fn ring(processes: u64) -> Result<Vec<End>, Problem> {
    let (mut readers, writers): (Vec<_>, Vec<_>) = (0..processes)
        .map(|_| std::io::pipe().map_err(problem_of("pipe")))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .unzip();
    readers.rotate_right(1);
    Ok(readers
        .into_iter()
        .zip(writers)
        .map(|(reader, writer)| End::new(reader, writer))
        .collect())
}

/// Size of a cache line on nearly all processors.
const LINE_BYTES: usize = 64;
const WORDS_PER_LINE: usize = LINE_BYTES / size_of::<u64>();

/// Memory in cache lines. A visit reads and writes one word of each line.
struct WorkingSet(Vec<u64>);

impl WorkingSet {
    /// Allocates the memory and visits it once, so that its pages exist.
    pub fn new(bytes: u64) -> Self {
        let words = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<u64>();
        let mut set = Self(vec![0; words]);
        set.visit();
        set
    }

    /// Adds one to a word of each cache line.
    pub fn visit(&mut self) {
        for word in black_box(&mut self.0).iter_mut().step_by(WORDS_PER_LINE) {
            *word = word.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_reaches_every_cache_line_once() {
        let mut set = WorkingSet::new(256);
        set.visit();
        let visited: Vec<_> = (0..4).flat_map(|_| [2, 0, 0, 0, 0, 0, 0, 0]).collect();
        assert_eq!(set.0, visited);
    }

    #[test]
    fn a_working_set_may_be_empty() {
        let mut set = WorkingSet::new(0);
        set.visit();
        assert!(set.0.is_empty());
    }
}
