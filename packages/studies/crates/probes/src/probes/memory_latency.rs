//! Probe `memory_latency`: loads memory; each address is the result of the load before.
//!
//! The cache lines of the working set form one cycle in random order. So no prefetcher can predict
//! the next line, and a cycle visits each line once.

use std::hint::black_box;
use std::ptr::{from_ref, null};
use std::time::Instant;

use equipoise_reporting::problem::Problem;
use fastrand::Rng;

use crate::memory::check_free_memory;
use crate::probe::{Class, OpenProbe, Parameter, Probe, ProbeOptions, Row};

pub const MEMORY_LATENCY: Probe = Probe {
    name: "memory_latency",
    summary: "a dependent load from a random cache line of the working set",
    size: Some(Parameter {
        summary: "bytes of the working set",
        default: 64 << 20,
        minimum: 128,
        maximum: 16 << 30,
    }),
    needs: "four times the working set in free memory",
    rows: &[
        Row::named("_4k").of_size(4 << 10),
        Row::named("_16k").of_size(16 << 10),
        Row::named("_64k").of_size(64 << 10),
        Row::named("_256k").of_size(256 << 10),
        Row::named("_1m").of_size(1 << 20),
        Row::named("_4m").of_size(4 << 20),
        Row::named("_16m").of_size(16 << 20),
        Row::named("_64m").of_size(64 << 20),
    ],
    ..Probe::latency(Class::Memory, open)
};

/// Seed of the order. All processes have the same order.
const SEED: u64 = 2005;

/// A cache line with a pointer to the next line.
#[repr(align(64))]
struct Line {
    next: *const Line,
}

fn open(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let order = random_order(check_free_memory(options.size)? / size_of::<Line>());
    let lines = link_lines(&order);
    let mut loads = 0;
    Ok(OpenProbe::latency(move |count| {
        let mut line = from_ref(&lines[order[loads % order.len()]]);
        let started = Instant::now();
        for _ in 0..count {
            // SAFETY: every line points to a line of the same slice.
            line = unsafe { (*line).next };
        }
        let line = black_box(line);
        let elapsed = started.elapsed();
        loads += usize::try_from(count).expect("far fewer loads than that");
        if line != from_ref(&lines[order[loads % order.len()]]) {
            return Err(Problem::failure(
                "the chain of loads ended at a wrong cache line",
            ));
        }
        Ok(elapsed)
    }))
}

fn random_order(lines: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..lines).collect();
    Rng::with_seed(SEED).shuffle(&mut order);
    order
}

/// Returns the lines. Each line points to the next line in the order, and the last to the first.
fn link_lines(order: &[usize]) -> Vec<Line> {
    let mut lines: Vec<_> = order.iter().map(|_| Line { next: null() }).collect();
    let base = lines.as_ptr();
    for (position, &line) in order.iter().enumerate() {
        let next = order[(position + 1) % order.len()];
        // SAFETY: the order has only numbers of lines.
        lines[line].next = unsafe { base.add(next) };
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_visited_once_before_any_is_visited_again() {
        let lines = link_lines(&random_order(1000));
        let mut visited = vec![0; lines.len()];
        let mut at = from_ref(&lines[0]);
        for _ in 0..lines.len() {
            let line = lines
                .iter()
                .position(|line| from_ref(line) == at)
                .expect("a line of the slice");
            visited[line] += 1;
            at = lines[line].next;
        }
        assert!(visited.iter().all(|&visits| visits == 1));
        assert_eq!(at, from_ref(&lines[0]));
    }

    #[test]
    fn the_order_is_random_and_the_same_in_every_process() {
        let order = random_order(1000);
        assert_eq!(order, random_order(1000));
        let neighbours = order
            .windows(2)
            .filter(|pair| pair[1] == pair[0] + 1)
            .count();
        // By chance, about one line is followed by its neighbour.
        assert!(neighbours < 10, "{neighbours}");
    }
}
