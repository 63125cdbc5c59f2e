//! Workload `spin`: a counted number of dependent integer steps.

use std::hint::black_box;
use std::time::Instant;

use lexopt::{Arg, Parser};

use crate::arguments::number;
use crate::metrics::{Outcome, Report};
use crate::problem::Problem;

/// One line for `--list`.
pub const SUMMARY: &str = "a counted number of dependent integer steps (--work)";

const HELP: &str = "usage: equipoise-workload spin [--work N]

Does N steps (default 4000000, about 10 ms), each of which needs the one before it: a program
with 3 % more steps does exactly 3 % more work. Reports ns_per_step.
";

const DEFAULT_WORK: u64 = 4_000_000;
const MOST_WORK: u64 = 1 << 48;
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// Reads the options and does the steps.
pub fn run(parser: &mut Parser) -> Result<Outcome, Problem> {
    let mut work = DEFAULT_WORK;
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("work") => work = number(parser, "work", 1..=MOST_WORK)?,
            Arg::Long("help") | Arg::Short('h') => return Ok(Outcome::Help(HELP)),
            other => return Err(other.unexpected().into()),
        }
    }
    let started = Instant::now();
    black_box(steps(black_box(SEED), work));
    let elapsed = started.elapsed();
    let nanoseconds = elapsed.as_secs_f64() * 1e9 / work as f64;
    Ok(Outcome::Measured(Report::default().cost(
        "ns_per_step",
        nanoseconds,
        "ns",
    )))
}

/// The state after `work` steps. A shift, an exclusive or and a product in turn have no closed
/// form that a compiler knows, and each step needs the one before it.
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
    fn steps_follow_one_from_the_other() {
        assert_eq!(steps(steps(SEED, 3), 4), steps(SEED, 7));
    }

    #[test]
    fn every_step_counts() {
        assert_ne!(steps(SEED, 1000), steps(SEED, 1001));
    }
}
