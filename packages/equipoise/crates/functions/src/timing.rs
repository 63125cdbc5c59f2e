//! Calls benchmarks: how many calls make a batch, and the batches of two libraries in turns.

use equipoise_kernel::clock::monotonic_ns;
use equipoise_random::SplitMix64;
use equipoise_reporting::problem::Problem;
use serde::Serialize;

use crate::library::Benchmark;
use crate::options::Comparison;
use crate::running::Running;

/// Minimum nanoseconds of a batch: reading the clock takes about 25 ns.
const MIN_BATCH_NS: u64 = 100_000;
/// Number of batches of which the shortest counts while the number of calls is searched.
const TRIES: usize = 3;
/// Number of calls that would take longer than a batch if each took a hundredth of a cycle.
const MAX_ITERATIONS: u64 = 1 << 26;

/// Result of one benchmark that ran alone.
#[derive(Serialize)]
pub struct Calibration {
    /// Number of calls in a batch: a power of two.
    pub iterations: u64,
    /// Nanoseconds of this batch.
    pub batch_ns: u64,
}

/// Nanoseconds of each batch, in the order in which they ran.
#[derive(Serialize)]
pub struct Batches {
    /// Batches of the library that was loaded first.
    pub first: Vec<u64>,
    pub second: Vec<u64>,
    /// Values of all calls together. It is written so that no call can be left out.
    pub consumed: u64,
}

/// Finds the smallest power of two of calls that take long enough for a batch.
pub fn calibrate(function: Benchmark) -> Result<Calibration, Problem> {
    let mut consumed = 0;
    let mut iterations = 1;
    loop {
        let mut batch_ns = u64::MAX;
        for _ in 0..TRIES {
            batch_ns = batch_ns.min(timed(function, iterations, &mut consumed));
            if batch_ns >= 100 * MIN_BATCH_NS {
                // A long call is not repeated.
                break;
            }
        }
        if batch_ns >= MIN_BATCH_NS {
            return Ok(Calibration {
                iterations,
                batch_ns,
            });
        }
        if iterations >= MAX_ITERATIONS {
            return Err(Problem::failure(format!(
                "{iterations} calls take {batch_ns} ns: the compiler removed the work, or the \
                 function ignores its argument; return a value that depends on the work"
            )));
        }
        iterations *= 2;
    }
}

/// Times batches of both libraries, in rounds that one of them begins by chance.
pub fn time_in_turns(
    functions: [Benchmark; 2],
    comparison: &Comparison,
    running: &Running,
    random: &mut SplitMix64,
) -> Batches {
    let warm_up = comparison.rounds.div_ceil(4);
    let mut times = [
        Vec::with_capacity(comparison.rounds),
        Vec::with_capacity(comparison.rounds),
    ];
    let mut consumed = 0;
    for round in 0..warm_up + comparison.rounds {
        let begins = usize::from(random.coin());
        for place in [begins, 1 - begins] {
            running.set(place);
            let batch_ns = timed(
                functions[place],
                comparison.iterations[place],
                &mut consumed,
            );
            if round >= warm_up {
                times[place].push(batch_ns);
            }
        }
    }
    let [first, second] = times;
    Batches {
        first,
        second,
        consumed,
    }
}

/// Returns the nanoseconds of some calls. Both libraries are called from here, so alike.
#[inline(never)]
fn timed(function: Benchmark, iterations: u64, consumed: &mut u64) -> u64 {
    let begin = monotonic_ns();
    // SAFETY: the type of a benchmark is part of its contract (equipoise_functions.h).
    let value = unsafe { function(iterations) };
    let end = monotonic_ns();
    *consumed = consumed.rotate_left(1) ^ value;
    end - begin
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn counts(iterations: u64) -> u64 {
        (0..iterations).fold(0, |sum, number| std::hint::black_box(sum ^ number))
    }

    extern "C" fn does_nothing(iterations: u64) -> u64 {
        iterations
    }

    #[test]
    fn enough_calls_make_a_batch() {
        let calibration = calibrate(counts).expect("it does work");
        assert!(calibration.batch_ns >= MIN_BATCH_NS);
        assert!(calibration.iterations.is_power_of_two());
    }

    #[test]
    fn a_function_without_work_is_refused() {
        let problem = calibrate(does_nothing).err().expect("it does no work");
        assert!(
            problem.to_string().contains("removed the work"),
            "{problem}"
        );
    }
}
