//! Workload `malloc`: allocates, touches and frees blocks.
//!
//! The benchmark of Sekhon's "The Art of Benchmarking" (2006) spends most of its time in such
//! calls. Its buffers have 35 KB. Some allocators take them from lists, others from the kernel each
//! time.

use std::ops::RangeInclusive;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::arguments::{Options, parse_number, to_usize};
use crate::block::{Block, OutOfMemory, Touch, page_size};
use crate::memory::{MemoryBaseline, minor_faults};
use crate::metrics::{Better, Report};
use crate::problem::Problem;
use crate::smallest_returned::{SearchResult, smallest_returned};
use crate::system_calls::count_system_calls;
use crate::workload::Workload;
use equipoise_random::Xorshift64;

pub const WORKLOAD: Workload = Workload {
    name: "malloc",
    summary: "allocate, touch and free blocks (--size --count --touch --pattern)",
    help: "usage: equipoise-workload malloc [options]

  --size BYTES     size of a block (default 35840)
  --count N        number of blocks that each thread allocates and frees (default 10000)
  --volume BYTES   reduce --count so that the sizes add up to at most BYTES, but not below 4 blocks
  --touch WHAT     page: write one byte of each page (default); all: fill the block; none
  --pattern HOW    immediate: free each block at once (default);
                   fifo:K: keep K blocks, free the oldest; random:K: keep K, free a random block
  --threads N      number of threads that do this at once (default 1: only the main thread)
  --trace N        afterwards, count the system calls of N more pairs of malloc and free, in a
                   traced copy of the process (default 0: none)
  --search BYTES   before, find the smallest block, up to BYTES, that the allocator returns to the
                   kernel when it is freed; each size in a new copy of the process (default 0: none)

Calls malloc and free of the C library, so it measures a preloaded allocator. Reports ns_per_pair
(the wall time of the slowest thread over --count); faults_per_pair (minor faults of the process
over the pairs of all threads); calls_per_pair; kernel_from_bytes (the result of --search, absent if
no block was returned) and searched_to_bytes; peak_bytes and retained_bytes (the largest resident
memory, and the resident memory after all was freed, less the memory that was resident before).
",
    run,
};

/// Number of blocks below which `--volume` does not reduce `--count`.
const MIN_PAIRS: u64 = 4;
// Permitted values of the options.
const SIZES: RangeInclusive<u64> = 1..=1 << 40;
const COUNTS: RangeInclusive<u64> = 1..=1 << 40;
const LIVE_BLOCKS: RangeInclusive<u64> = 1..=1 << 24;
const THREADS: RangeInclusive<u64> = 1..=1024;
const TOUCHES: [(&str, Touch); 3] = [
    ("page", Touch::Page),
    ("all", Touch::All),
    ("none", Touch::None),
];

/// Which block is freed after a new block was allocated. The number is the number of live blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Immediate,
    Fifo(usize),
    Random(usize),
}

/// The pairs of malloc and free that each thread makes.
#[derive(Clone, Copy, Debug)]
struct Job {
    size: usize,
    count: u64,
    touch: Touch,
    pattern: Pattern,
    page_size: usize,
}

impl Job {
    fn allocate(&self) -> Result<Block, OutOfMemory> {
        Block::new(self.size, self.touch, self.page_size)
    }
}

fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut job = Job {
        size: 35_840,
        count: 10_000,
        touch: Touch::Page,
        pattern: Pattern::Immediate,
        page_size: page_size(),
    };
    let (mut threads, mut volume, mut traced_pairs, mut max_searched) = (1, u64::MAX, 0, 0);
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "size" => job.size = options.size(SIZES)?,
            "count" => job.count = options.number(COUNTS)?,
            "volume" => volume = options.number(SIZES)?,
            "trace" => traced_pairs = options.number(0..=1 << 20)?,
            "search" => max_searched = options.size(0..=1 << 40)?,
            "touch" => job.touch = options.choice(&TOUCHES)?,
            "pattern" => job.pattern = parse_pattern(&options.text()?)?,
            "threads" => threads = options.size(THREADS)?,
            _ => return Err(options.unknown_option()),
        }
    }
    job.count = job.count.min((volume / job.size as u64).max(MIN_PAIRS));
    let search_result = match max_searched {
        0 => None,
        largest => smallest_returned(largest, job.page_size),
    };
    let baseline = MemoryBaseline::now();
    let faults_before = minor_faults();
    let elapsed = if threads == 1 {
        // glibc gives other threads other arenas (heaps), so a single job runs on the main thread.
        time_job(&job)
    } else {
        time_on_threads(&job, threads)
    }?;
    let faults = minor_faults() - faults_before;
    let pairs = job.count as f64;
    let seconds_per_pair = elapsed.as_secs_f64() / pairs;
    let faults_per_pair = faults as f64 / (pairs * threads as f64);
    let mut report = baseline.add_to(
        Report::default()
            .timed(
                "ns_per_pair",
                seconds_per_pair * 1e9,
                "ns",
                Better::Lower,
                elapsed,
            )
            .work(seconds_per_pair, elapsed)
            .cost("faults_per_pair", faults_per_pair, "1"),
    );
    if let Some(calls) = traced_calls(&job, traced_pairs) {
        report = report.cost("calls_per_pair", calls, "1");
    }
    if let Some(search_result) = search_result {
        report = report.bytes("searched_to_bytes", Some(max_searched as u64));
        if let SearchResult::Found(size) = search_result {
            report = report.bytes("kernel_from_bytes", Some(size as u64));
        }
    }
    Ok(report)
}

/// Returns the number of system calls for each of `pairs` pairs of malloc and free. `None` if
/// `pairs` is 0 or tracing is not permitted.
fn traced_calls(job: &Job, pairs: u64) -> Option<f64> {
    if pairs == 0 {
        return None;
    }
    let count = pairs;
    let job = Job { count, ..*job };
    let calls = count_system_calls(|| {
        // An error would have occurred in the timed run.
        let _ = time_job(&job);
    })?;
    Some(calls as f64 / pairs as f64)
}

fn parse_pattern(value: &str) -> Result<Pattern, Problem> {
    let parse_live_blocks = |count: &str| {
        parse_number(count, LIVE_BLOCKS)
            .map(to_usize)
            .map_err(|message| Problem::usage(format!("--pattern {value}: {message}")))
    };
    match value.split_once(':') {
        None if value == "immediate" => Ok(Pattern::Immediate),
        Some(("fifo", count)) => Ok(Pattern::Fifo(parse_live_blocks(count)?)),
        Some(("random", count)) => Ok(Pattern::Random(parse_live_blocks(count)?)),
        _ => Err(Problem::usage(format!(
            "--pattern: `{value}` is none of: immediate, fifo:K, random:K"
        ))),
    }
}

/// Returns the wall time of the slowest of several threads that start together.
fn time_on_threads(job: &Job, threads: usize) -> Result<Duration, OutOfMemory> {
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    time_job(job)
                })
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("a job does not panic"))
            .try_fold(Duration::ZERO, |slowest, time| Ok(slowest.max(time?)))
    })
}

fn time_job(job: &Job) -> Result<Duration, OutOfMemory> {
    match job.pattern {
        Pattern::Immediate => {
            let started = Instant::now();
            for _ in 0..job.count {
                drop(job.allocate()?);
            }
            Ok(started.elapsed())
        }
        Pattern::Fifo(live) => {
            let mut next = 0;
            time_with_live_blocks(job, live, || {
                next = (next + 1) % live;
                next
            })
        }
        Pattern::Random(live) => {
            let mut random = Xorshift64::default();
            time_with_live_blocks(job, live, || random.below(live))
        }
    }
}

/// Times pairs of malloc and free with up to `live` blocks. Each new block replaces the block at
/// the index that `choose` returns, which is freed. The list is allocated before the clock starts,
/// and the last blocks are freed before the clock stops.
fn time_with_live_blocks(
    job: &Job,
    live: usize,
    mut choose: impl FnMut() -> usize,
) -> Result<Duration, OutOfMemory> {
    let mut slots: Vec<Option<Block>> = std::iter::repeat_with(|| None).take(live).collect();
    let started = Instant::now();
    for _ in 0..job.count {
        slots[choose()] = Some(job.allocate()?);
    }
    slots.fill_with(|| None);
    Ok(started.elapsed())
}

#[cfg(test)]
mod tests {
    use lexopt::Parser;

    use super::{Options, Pattern, TOUCHES, Touch, parse_pattern};

    #[test]
    fn patterns_are_parsed_with_their_number_of_live_blocks() {
        assert_eq!(parse_pattern("immediate").unwrap(), Pattern::Immediate);
        assert_eq!(parse_pattern("fifo:8").unwrap(), Pattern::Fifo(8));
        assert_eq!(parse_pattern("random:3").unwrap(), Pattern::Random(3));
    }

    #[test]
    fn an_unknown_pattern_is_refused_with_the_choices() {
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
    fn an_unknown_touch_is_refused_with_the_choices() {
        let touch = |value: &str| {
            let mut options = Options::new(Parser::from_args(["--touch", value]));
            options.next_name().expect("an option");
            options.choice(&TOUCHES)
        };
        assert_eq!(touch("all").unwrap(), Touch::All);
        let problem = touch("some").expect_err("some");
        assert!(problem.to_string().contains("page, all, none"), "{problem}");
    }
}
