//! Workload `malloc`: allocate, touch and free blocks with the C library's own functions.
//!
//! The benchmark of Sekhon's "The Art of Benchmarking" (2006) spends its time here: buffers of
//! 35 KB, which one allocator takes from its own lists and another from the kernel each time.

use std::ops::RangeInclusive;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::arguments::{Options, parse_number, to_usize};
use crate::block::{Block, OutOfMemory, Touch, page_size};
use crate::calls::system_calls;
use crate::memory::{Held, minor_faults};
use crate::metrics::{Better, Report};
use crate::problem::Problem;
use crate::step::{Step, smallest_returned};
use crate::workload::Workload;
use equipoise_random::Xorshift64;

pub const WORKLOAD: Workload = Workload {
    name: "malloc",
    summary: "allocate, touch and free blocks (--size --count --touch --pattern)",
    help: "usage: equipoise-workload malloc [options]

  --size BYTES     size of a block (default 35840)
  --count N        blocks that each thread allocates and frees (default 10000)
  --volume BYTES   at most as many blocks as make so many bytes, but at least 4
  --touch WHAT     page: write one byte of each page (default); all: fill; none
  --pattern HOW    immediate: free each block at once (default)
                   fifo:K: keep K blocks, free the oldest; random:K: free one at random
  --threads N      threads that do so at the same time (default 1: the main thread alone)
  --trace N        afterwards, count the system calls of N more pairs of the main thread, in a
                   traced copy of the process (default 0: do not)
  --search BYTES   before, find the smallest block up to so many bytes that goes back to the
                   kernel when it is freed, each in a fresh copy of the process (default 0: do not)

Calls malloc and free of the C library, so a preloaded allocator is what it measures. Reports
ns_per_pair: the wall time of the slowest thread over --count; faults_per_pair: minor faults of
the process over the pairs of all threads; calls_per_pair; kernel_from_bytes, left out where no
block that was tried goes back, and searched_to_bytes; peak_bytes and retained_bytes: what was resident at
most, and after everything was freed, beyond what was resident before.
",
    run,
};

const LEAST_PAIRS: u64 = 4;
const SIZES: RangeInclusive<u64> = 1..=1 << 40;
const COUNTS: RangeInclusive<u64> = 1..=1 << 40;
const LIVE_BLOCKS: RangeInclusive<u64> = 1..=1 << 24;
const THREADS: RangeInclusive<u64> = 1..=1024;
const TOUCHES: [(&str, Touch); 3] = [
    ("page", Touch::Page),
    ("all", Touch::All),
    ("none", Touch::None),
];

/// Block that is freed after a new one was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Immediate,
    Fifo(usize),
    Random(usize),
}

/// Work of one thread.
#[derive(Clone, Copy, Debug)]
struct Job {
    size: usize,
    count: u64,
    touch: Touch,
    pattern: Pattern,
    page: usize,
}

impl Job {
    fn block(&self) -> Result<Block, OutOfMemory> {
        Block::new(self.size, self.touch, self.page)
    }
}

/// Reads the options and does the work.
fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut job = Job {
        size: 35_840,
        count: 10_000,
        touch: Touch::Page,
        pattern: Pattern::Immediate,
        page: page_size(),
    };
    let (mut threads, mut volume, mut traced, mut searched) = (1, u64::MAX, 0, 0);
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "size" => job.size = options.size(SIZES)?,
            "count" => job.count = options.number(COUNTS)?,
            "volume" => volume = options.number(SIZES)?,
            "trace" => traced = options.number(0..=1 << 20)?,
            "search" => searched = options.size(0..=1 << 40)?,
            "touch" => job.touch = options.choice(&TOUCHES)?,
            "pattern" => job.pattern = parse_pattern(&options.text()?)?,
            "threads" => threads = options.size(THREADS)?,
            _ => return Err(options.unknown()),
        }
    }
    job.count = job.count.min((volume / job.size as u64).max(LEAST_PAIRS));
    let step = match searched {
        0 => None,
        largest => smallest_returned(largest, job.page),
    };
    let held = Held::now();
    let faults = minor_faults();
    let elapsed = if threads == 1 {
        // glibc gives other threads other arenas, so a single thread must be the main thread.
        timed(&job)
    } else {
        on_threads(&job, threads)
    }?;
    let faults = minor_faults() - faults;
    let pairs = job.count as f64;
    let seconds = elapsed.as_secs_f64() / pairs;
    let faults = faults as f64 / (pairs * threads as f64);
    let mut report = held.add_to(
        Report::default()
            .timed("ns_per_pair", seconds * 1e9, "ns", Better::Lower, elapsed)
            .work(seconds, elapsed)
            .cost("faults_per_pair", faults, "1"),
    );
    if let Some(calls) = traced_calls(&job, traced) {
        report = report.cost("calls_per_pair", calls, "1");
    }
    if let Some(step) = step {
        report = report.bytes("searched_to_bytes", Some(searched as u64));
        if let Step::At(size) = step {
            report = report.bytes("kernel_from_bytes", Some(size as u64));
        }
    }
    Ok(report)
}

/// System calls for each of `pairs` more pairs; `None` if there are none, or tracing is impossible.
fn traced_calls(job: &Job, pairs: u64) -> Option<f64> {
    if pairs == 0 {
        return None;
    }
    let count = pairs;
    let job = Job { count, ..*job };
    let calls = system_calls(|| {
        // An error here has occurred before, in the timed run.
        let _ = timed(&job);
    })?;
    Some(calls as f64 / pairs as f64)
}

fn parse_pattern(word: &str) -> Result<Pattern, Problem> {
    let live = |count: &str| {
        parse_number(count, LIVE_BLOCKS)
            .map(to_usize)
            .map_err(|words| Problem::usage(format!("--pattern {word}: {words}")))
    };
    match word.split_once(':') {
        None if word == "immediate" => Ok(Pattern::Immediate),
        Some(("fifo", count)) => Ok(Pattern::Fifo(live(count)?)),
        Some(("random", count)) => Ok(Pattern::Random(live(count)?)),
        _ => Err(Problem::usage(format!(
            "--pattern: `{word}` is none of: immediate, fifo:K, random:K"
        ))),
    }
}

/// The wall time of the slowest of several threads that start together.
fn on_threads(job: &Job, threads: usize) -> Result<Duration, OutOfMemory> {
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    timed(job)
                })
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("a job does not panic"))
            .try_fold(Duration::ZERO, |slowest, time| Ok(slowest.max(time?)))
    })
}

fn timed(job: &Job) -> Result<Duration, OutOfMemory> {
    match job.pattern {
        Pattern::Immediate => {
            let started = Instant::now();
            for _ in 0..job.count {
                drop(job.block()?);
            }
            Ok(started.elapsed())
        }
        Pattern::Fifo(live) => {
            let mut next = 0;
            with_live_blocks(job, live, || {
                next = (next + 1) % live;
                next
            })
        }
        Pattern::Random(live) => {
            let mut coin = Xorshift64::default();
            with_live_blocks(job, live, || coin.below(live))
        }
    }
}

/// Keeps up to `live` blocks; each new block replaces the block in the slot that `choose` names,
/// which is freed. The slots are allocated before the clock starts, and the remaining blocks are
/// freed before it stops: `count` pairs, all timed.
fn with_live_blocks(
    job: &Job,
    live: usize,
    mut choose: impl FnMut() -> usize,
) -> Result<Duration, OutOfMemory> {
    let mut slots: Vec<Option<Block>> = std::iter::repeat_with(|| None).take(live).collect();
    let started = Instant::now();
    for _ in 0..job.count {
        slots[choose()] = Some(job.block()?);
    }
    slots.fill_with(|| None);
    Ok(started.elapsed())
}

#[cfg(test)]
mod tests {
    use lexopt::Parser;

    use super::{Options, Pattern, TOUCHES, Touch, parse_pattern};

    #[test]
    fn patterns_are_read_with_their_number_of_live_blocks() {
        assert_eq!(parse_pattern("immediate").unwrap(), Pattern::Immediate);
        assert_eq!(parse_pattern("fifo:8").unwrap(), Pattern::Fifo(8));
        assert_eq!(parse_pattern("random:3").unwrap(), Pattern::Random(3));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_the_choices() {
        for word in "fifo fifo: fifo:0 random:-1 immediate:3 lifo:2"
            .split(' ')
            .chain([""])
        {
            let problem = parse_pattern(word).expect_err(word);
            assert_eq!(problem.exit_status(), 2);
            assert!(problem.to_string().contains("--pattern"), "{problem}");
        }
    }

    #[test]
    fn what_is_no_touch_is_refused_with_the_choices() {
        let touch = |word: &str| {
            let mut options = Options::new(Parser::from_args(["--touch", word]));
            options.next_name().expect("an option");
            options.choice(&TOUCHES)
        };
        assert_eq!(touch("all").unwrap(), Touch::All);
        let problem = touch("some").expect_err("some");
        assert!(problem.to_string().contains("page, all, none"), "{problem}");
    }
}
