//! Workload `spin`: a given number of integer operations. Each operation needs the previous result.

use std::hint::black_box;
use std::time::Instant;

use crate::arguments::Options;
use crate::metrics::{Better, Report};
use crate::problem::Problem;
use crate::workload::Workload;

pub const WORKLOAD: Workload = Workload {
    name: "spin",
    summary: "a counted number of dependent integer steps (--work)",
    help: "usage: equipoise-workload spin [--work N]

Does N steps (default 4000000, about 10 ms), each of which needs the one before it: a program
with 3 % more steps does exactly 3 % more work. Reports ns_per_step.
",
    run,
};

/// State before the first step.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut work = 4_000_000;
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "work" => work = options.number(1..=1 << 48)?,
            _ => return Err(options.unknown_option()),
        }
    }
    let started = Instant::now();
    black_box(steps(black_box(SEED), work));
    let elapsed = started.elapsed();
    let nanoseconds = elapsed.as_secs_f64() * 1e9 / work as f64;
    Ok(Report::default().timed("ns_per_step", nanoseconds, "ns", Better::Lower, elapsed))
}

/// Returns the state after `work` steps. A step is a shift, an exclusive or and a product. A
/// compiler cannot replace many such steps by a formula.
fn steps(seed: u64, work: u64) -> u64 {
    let mut state = seed;
    for _ in 0..work {
        state = (state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::{SEED, steps};

    #[test]
    fn each_step_starts_from_the_result_of_the_step_before() {
        assert_eq!(steps(steps(SEED, 3), 4), steps(SEED, 7));
    }

    #[test]
    fn every_step_changes_the_result() {
        assert_ne!(steps(SEED, 1000), steps(SEED, 1001));
    }
}
