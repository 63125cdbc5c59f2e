//! Workload `fragment`: allocates blocks with mixed lifetimes, which leave holes in the heap.
//!
//! An allocator may return a freed block to the kernel if the block is larger than a threshold.
//! Smaller blocks leave holes. Robson (1974) gives the worst case of any allocator.

use std::time::Instant;

use crate::arguments::Options;
use crate::block::{Block, OutOfMemory, Touch, page_size};
use crate::memory::MemoryBaseline;
use crate::metrics::{Better, Report};
use crate::problem::Problem;
use crate::workload::Workload;
use equipoise_random::Xorshift64;

pub const WORKLOAD: Workload = Workload {
    name: "fragment",
    summary: "mixed lifetimes that leave holes (--live --rounds --keep)",
    help: "usage: equipoise-workload fragment [options]

  --live BYTES       in each round, allocate until this many bytes are live (default 67108864)
  --rounds N         number of rounds (default 4)
  --keep PERCENT     after each round, keep this percentage of the blocks, drawn at random; free
                     the other blocks (default 20)
  --smallest BYTES   the smallest block of the first round (default 64)
  --largest BYTES    the largest block of the first round (default 16384)

The logarithms of the sizes are uniform. Sizes double from round to round, so that new blocks do not
fit into the holes of old blocks. One byte of each page is written. Reports ns_per_call (of malloc
or free, including the writes); live_bytes, the live bytes after the last round; held_bytes, the
resident memory then; peak_bytes, the largest resident memory; and retained_bytes, the resident
memory after all blocks were freed. Memory that was resident before is subtracted.
",
    run,
};

/// The options of the workload.
struct Plan {
    live_bytes: usize,
    rounds: u64,
    keep_percent: usize,
    /// Smallest and largest size of a block in the first round, in bytes.
    smallest: usize,
    largest: usize,
}

/// Blocks with their sizes, the sum of the sizes, and the number of calls of malloc and free.
#[derive(Default)]
struct Blocks {
    list: Vec<(Block, usize)>,
    live_bytes: usize,
    calls: u64,
}

fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut plan = Plan {
        live_bytes: 64 << 20,
        rounds: 4,
        keep_percent: 20,
        smallest: 64,
        largest: 16 << 10,
    };
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "live" => plan.live_bytes = options.size(1..=1 << 40)?,
            "rounds" => plan.rounds = options.number(1..=20)?,
            "keep" => plan.keep_percent = options.size(0..=100)?,
            "smallest" => plan.smallest = options.size(1..=1 << 30)?,
            "largest" => plan.largest = options.size(1..=1 << 30)?,
            _ => return Err(options.unknown_option()),
        }
    }
    if plan.largest < plan.smallest {
        return Err(Problem::usage(format!(
            "--largest {} is below --smallest {}",
            plan.largest, plan.smallest
        )));
    }
    measure(&plan)
}

fn measure(plan: &Plan) -> Result<Report, Problem> {
    let page = page_size();
    let mut random = Xorshift64::default();
    let mut blocks = Blocks::default();
    // The list must not grow during the measurement.
    blocks
        .list
        .reserve_exact(1 + plan.live_bytes.div_ceil(plan.smallest));
    let baseline = MemoryBaseline::now();
    let started = Instant::now();
    for round in 0..plan.rounds {
        let doublings = u32::try_from(round).expect("at most 20");
        let sizes = (plan.smallest << doublings, plan.largest << doublings);
        blocks.fill(plan.live_bytes, sizes, page, &mut random)?;
        blocks.keep_percent(plan.keep_percent, &mut random);
    }
    let mut elapsed = started.elapsed();
    let held_bytes = baseline.bytes_since();
    let live_bytes = blocks.live_bytes;
    let started = Instant::now();
    blocks.keep_percent(0, &mut random);
    elapsed += started.elapsed();
    let seconds = elapsed.as_secs_f64();
    let report = Report::default()
        .timed(
            "ns_per_call",
            seconds * 1e9 / blocks.calls as f64,
            "ns",
            Better::Lower,
            elapsed,
        )
        .work(seconds, elapsed)
        .bytes("live_bytes", Some(live_bytes as u64))
        .bytes("held_bytes", held_bytes);
    Ok(baseline.add_to(report))
}

impl Blocks {
    /// Allocates until the given number of bytes is live.
    fn fill(
        &mut self,
        live_bytes: usize,
        (smallest, largest): (usize, usize),
        page: usize,
        random: &mut Xorshift64,
    ) -> Result<(), OutOfMemory> {
        while self.live_bytes < live_bytes {
            let size = draw_size(smallest, largest, random);
            self.list.push((Block::new(size, Touch::Page, page)?, size));
            self.live_bytes += size;
            self.calls += 1;
        }
        Ok(())
    }

    /// Keeps a percentage of the blocks, drawn at random, and frees the others.
    fn keep_percent(&mut self, percent: usize, random: &mut Xorshift64) {
        let before = self.list.len();
        self.list.retain(|_| random.below(100) < percent);
        self.live_bytes = self.list.iter().map(|(_, size)| size).sum();
        self.calls += (before - self.list.len()) as u64;
    }
}

/// Draws a size whose logarithm is about uniform. First, `smallest` is multiplied by a random power
/// of two; then a size is drawn from this product up to twice the product, uniformly.
fn draw_size(smallest: usize, largest: usize, random: &mut Xorshift64) -> usize {
    let doublings = (largest / smallest).ilog2();
    let power = random.below(doublings as usize + 1);
    let low = smallest << power;
    let high = (low * 2 - 1).min(largest);
    low + random.below(high + 1 - low)
}

#[cfg(test)]
mod tests {
    use super::{Blocks, draw_size};
    use equipoise_random::Xorshift64;

    #[test]
    fn sizes_are_within_the_limits_and_come_near_the_largest() {
        for (smallest, largest) in [(1, 1), (64, 100), (64, 128), (3, 1000), (16, 16_384)] {
            let mut random = Xorshift64::default();
            let sizes: Vec<usize> = (0..20_000)
                .map(|_| draw_size(smallest, largest, &mut random))
                .collect();
            assert!(*sizes.iter().min().unwrap() >= smallest);
            assert!(*sizes.iter().max().unwrap() <= largest);
            assert!(sizes.iter().any(|&size| size * 10 >= largest * 9));
        }
    }

    #[test]
    fn the_requested_percentage_of_the_blocks_is_kept() {
        let mut random = Xorshift64::default();
        let mut blocks = Blocks::default();
        blocks
            .fill(1_000_000, (10, 100), 4096, &mut random)
            .unwrap();
        let before = blocks.list.len();
        blocks.keep_percent(20, &mut random);
        let share = blocks.list.len() as f64 / before as f64;
        // The limit is five standard errors.
        assert!((share - 0.2).abs() < 5.0 * (0.2 * 0.8 / before as f64).sqrt());
        blocks.keep_percent(0, &mut random);
        assert_eq!((blocks.list.len(), blocks.live_bytes), (0, 0));
        assert_eq!(blocks.calls, 2 * before as u64);
    }
}
