//! Calls benchmarks: how many calls make a batch, and the batches of two libraries in turns.

use equipoise_kernel::clock::monotonic_ns;
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
    random: &mut Random,
) -> Batches {
    let warm_up = comparison.rounds.div_ceil(4);
    let mut times = [
        Vec::with_capacity(comparison.rounds),
        Vec::with_capacity(comparison.rounds),
    ];
    let mut consumed = 0;
    for round in 0..warm_up + comparison.rounds {
        let begins = usize::from(random.next() >> 63 == 1);
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

/// Random numbers from a seed (`SplitMix64`, Steele, Lea and Flood 2014).
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a bound that is small, so that its bias does not matter.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 32) % bound
    }
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

    #[test]
    fn the_numbers_of_a_seed_are_those_of_the_reference() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn both_libraries_begin_about_half_of_the_rounds() {
        let mut random = Random::new(7);
        let begins = (0..1000).filter(|_| random.next() >> 63 == 1).count();
        assert!((400..600).contains(&begins), "{begins}");
    }
}
