//! Workload `fragment`: blocks with mixed lifetimes, which leave holes.
//!
//! The holes are the drawback of a high threshold: blocks above the threshold go back to the kernel
//! and leave no holes. Robson (1974) gives the worst case of any allocator.

use std::time::Instant;

use crate::arguments::Options;
use crate::block::{Block, OutOfMemory, Touch, page_size};
use crate::memory::Held;
use crate::metrics::{Better, Report};
use crate::problem::Problem;
use crate::workload::Workload;
use equipoise_random::Xorshift64;

pub const WORKLOAD: Workload = Workload {
    name: "fragment",
    summary: "mixed lifetimes that leave holes (--live --rounds --keep)",
    help: "usage: equipoise-workload fragment [options]

  --live BYTES       allocate until so much is live (default 67108864)
  --rounds N         do so N times (default 4)
  --keep PERCENT     between two rounds keep so many of the blocks, drawn at random; free the
                     rest (default 20)
  --smallest BYTES   the smallest block of the first round (default 64)
  --largest BYTES    the largest block of the first round (default 16384)

Sizes are drawn evenly by their logarithm and double from round to round, so that new blocks do
not fit into the holes of the old ones. One byte of each page is written. Reports ns_per_call (of
malloc or free, writing included); live_bytes, what is live after the last round has freed its
share; held_bytes, what is resident then; peak_bytes, the most; and retained_bytes, what is
resident after everything was freed: each beyond what was resident before.
",
    run,
};

/// The options of the workload.
struct Plan {
    live: usize,
    rounds: u64,
    keep: usize,
    smallest: usize,
    largest: usize,
}

/// Blocks, and the sum of their sizes.
#[derive(Default)]
struct Blocks {
    list: Vec<(Block, usize)>,
    live: usize,
    calls: u64,
}

/// Reads the options and does the work.
fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut plan = Plan {
        live: 64 << 20,
        rounds: 4,
        keep: 20,
        smallest: 64,
        largest: 16 << 10,
    };
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "live" => plan.live = options.size(1..=1 << 40)?,
            "rounds" => plan.rounds = options.number(1..=20)?,
            "keep" => plan.keep = options.size(0..=100)?,
            "smallest" => plan.smallest = options.size(1..=1 << 30)?,
            "largest" => plan.largest = options.size(1..=1 << 30)?,
            _ => return Err(options.unknown()),
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
    let mut coin = Xorshift64::default();
    let mut blocks = Blocks::default();
    // The list of the blocks is not part of the measurement: room for all that may come.
    blocks
        .list
        .reserve_exact(1 + plan.live.div_ceil(plan.smallest));
    let held = Held::now();
    let started = Instant::now();
    for round in 0..plan.rounds {
        let doublings = u32::try_from(round).expect("at most 20");
        let sizes = (plan.smallest << doublings, plan.largest << doublings);
        blocks.fill(plan.live, sizes, page, &mut coin)?;
        blocks.thin(plan.keep, &mut coin);
    }
    let mut elapsed = started.elapsed();
    let held_bytes = held.since();
    let live_bytes = blocks.live;
    let started = Instant::now();
    blocks.thin(0, &mut coin);
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
    Ok(held.add_to(report))
}

impl Blocks {
    /// Allocates until the given number of bytes is live.
    fn fill(
        &mut self,
        live: usize,
        (smallest, largest): (usize, usize),
        page: usize,
        coin: &mut Xorshift64,
    ) -> Result<(), OutOfMemory> {
        while self.live < live {
            let size = drawn_size(smallest, largest, coin);
            self.list.push((Block::new(size, Touch::Page, page)?, size));
            self.live += size;
            self.calls += 1;
        }
        Ok(())
    }

    /// Frees all except `keep` percent of the blocks, drawn at random.
    fn thin(&mut self, keep: usize, coin: &mut Xorshift64) {
        let before = self.list.len();
        self.list.retain(|_| coin.below(100) < keep);
        self.live = self.list.iter().map(|(_, size)| size).sum();
        self.calls += (before - self.list.len()) as u64;
    }
}

/// A size with a uniform logarithm between the two: first a random doubling, then a size within it.
fn drawn_size(smallest: usize, largest: usize, coin: &mut Xorshift64) -> usize {
    let doublings = (largest / smallest).ilog2();
    let power = coin.below(doublings as usize + 1);
    let low = smallest << power;
    let high = (low * 2 - 1).min(largest);
    low + coin.below(high + 1 - low)
}

#[cfg(test)]
mod tests {
    use super::{Blocks, drawn_size};
    use equipoise_random::Xorshift64;

    #[test]
    fn sizes_stay_between_the_two_and_reach_both_ends() {
        for (smallest, largest) in [(1, 1), (64, 100), (64, 128), (3, 1000), (16, 16_384)] {
            let mut coin = Xorshift64::default();
            let sizes: Vec<usize> = (0..20_000)
                .map(|_| drawn_size(smallest, largest, &mut coin))
                .collect();
            assert!(*sizes.iter().min().unwrap() >= smallest);
            assert!(*sizes.iter().max().unwrap() <= largest);
            assert!(sizes.iter().any(|&size| size * 10 >= largest * 9));
        }
    }

    #[test]
    fn what_is_kept_of_the_blocks_is_the_share_asked_for() {
        let mut coin = Xorshift64::default();
        let mut blocks = Blocks::default();
        blocks.fill(1_000_000, (10, 100), 4096, &mut coin).unwrap();
        let before = blocks.list.len();
        blocks.thin(20, &mut coin);
        let share = blocks.list.len() as f64 / before as f64;
        // Five standard errors.
        assert!((share - 0.2).abs() < 5.0 * (0.2 * 0.8 / before as f64).sqrt());
        blocks.thin(0, &mut coin);
        assert_eq!((blocks.list.len(), blocks.live), (0, 0));
        assert_eq!(blocks.calls, 2 * before as u64);
    }
}
