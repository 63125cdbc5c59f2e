//! Times operations in batches. A batch is long enough for the resolution of the clock.

use std::time::{Duration, Instant};

use equipoise_reporting::metrics::median;
use equipoise_reporting::problem::Problem;

use crate::probe::Operation;

/// Number and length of the batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    pub batches: u64,
    /// Approximate length of a batch, including the untimed parts of its operations.
    pub duration: Duration,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            batches: 11,
            duration: Duration::from_millis(10),
        }
    }
}

/// Maximum factor by which the number of operations grows from one trial run to the next. The last
/// trial run takes at least a sixteenth of a batch, which is long enough for an estimate.
const MAX_GROWTH: f64 = 16.0;
/// Maximum number of trial runs, which is enough for operations of a nanosecond.
const MAX_TRIAL_RUNS: u32 = 16;

/// The times of all batches.
#[derive(Debug)]
pub struct Batches {
    /// Seconds of one operation, for each batch.
    pub times: Vec<f64>,
    /// Number of operations in each batch.
    pub operations_per_batch: u64,
}

/// Measures the seconds of one operation in each batch; a time of 0 is an error.
pub fn measure(operation: &mut dyn Operation, batching: &Batching) -> Result<Batches, Problem> {
    let count = calibrate(batching.duration, |count| {
        let started = Instant::now();
        operation.repeat(count)?;
        Ok(started.elapsed())
    })?;
    let times = (0..batching.batches)
        .map(|_| {
            let elapsed = operation.repeat(count)?;
            if elapsed.is_zero() {
                return Err(Problem::failure(format!(
                    "the time of {count} operations is 0 after the subtraction of a constant time \
                     for each; make --batch-ms longer, such as --batch-ms 100"
                )));
            }
            Ok(elapsed.as_secs_f64() / count as f64)
        })
        .collect::<Result<_, _>>()?;
    Ok(Batches {
        times,
        operations_per_batch: count,
    })
}

/// Returns the seconds of an operation, which a probe subtracts from its own times. The result is
/// the median of some short batches, so a disturbance of one batch has no effect.
pub fn time_to_subtract(operation: &mut dyn Operation) -> Result<f64, Problem> {
    let batching = Batching {
        duration: Duration::from_micros(500),
        ..Batching::default()
    };
    median(&measure(operation, &batching)?.times)
        .ok_or_else(|| Problem::failure("there was no batch"))
}

/// Subtracts `count` times `seconds_each` from a time; the result is at least 0.
pub fn subtract(time: Duration, count: u64, seconds_each: f64) -> Duration {
    let difference = time.as_secs_f64() - seconds_each * count as f64;
    Duration::try_from_secs_f64(difference).unwrap_or_default()
}

/// Returns the number of operations that take about `duration`. The trial runs also warm up.
fn calibrate(
    duration: Duration,
    mut wall_time_of: impl FnMut(u64) -> Result<Duration, Problem>,
) -> Result<u64, Problem> {
    // The first operation is slower, because its caches are cold.
    wall_time_of(1)?;
    let mut count = 1;
    for _ in 0..MAX_TRIAL_RUNS {
        let wall_time = wall_time_of(count)?.max(Duration::from_nanos(1));
        let missing_factor = duration.as_secs_f64() / wall_time.as_secs_f64();
        count = scale(count, missing_factor.min(MAX_GROWTH));
        if missing_factor <= MAX_GROWTH {
            break;
        }
    }
    Ok(count)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of operations, far below 2^63"
)]
fn scale(count: u64, factor: f64) -> u64 {
    ((count as f64 * factor).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_millis(10);

    /// Calibrates operations of some nanoseconds; returns the count and the time spent.
    fn calibrate_fake(nanoseconds: f64) -> (u64, f64) {
        let mut spent = 0.0;
        let count = calibrate(DURATION, |count| {
            let seconds = count as f64 * nanoseconds * 1e-9;
            spent += seconds;
            Ok(Duration::from_secs_f64(seconds))
        });
        (count.expect("no operation fails"), spent)
    }

    #[test]
    fn a_batch_lasts_as_long_as_requested_whatever_an_operation_takes() {
        for nanoseconds in [1.0, 7.0, 83.0, 950.0, 12_345.0, 700_000.0, 3_000_000.0] {
            let (count, _) = calibrate_fake(nanoseconds);
            let batch = count as f64 * nanoseconds * 1e-9;
            let difference = (batch - DURATION.as_secs_f64()).abs();
            assert!(
                difference <= nanoseconds * 1e-9,
                "{nanoseconds} ns: a batch of {batch} s"
            );
        }
    }

    #[test]
    fn calibration_takes_at_most_about_one_batch() {
        for nanoseconds in [1.0, 83.0, 12_345.0, 700_000.0] {
            let (_, spent) = calibrate_fake(nanoseconds);
            assert!(
                spent < 1.1 * DURATION.as_secs_f64(),
                "{nanoseconds}: {spent}"
            );
        }
    }

    #[test]
    fn a_batch_has_a_single_operation_if_the_operation_is_longer_than_a_batch() {
        assert_eq!(calibrate_fake(50_000_000.0).0, 1);
    }

    #[test]
    fn the_time_of_each_batch_is_divided_by_its_operations() {
        let mut counts = Vec::new();
        let mut operation = |count: u64| {
            counts.push(count);
            std::thread::sleep(Duration::from_micros(10 * count));
            Ok(Duration::from_micros(5 * count))
        };
        let batching = Batching {
            batches: 3,
            duration: Duration::from_micros(200),
        };
        let Batches {
            times,
            operations_per_batch,
        } = measure(&mut operation, &batching).expect("no operation fails");
        assert_eq!(times.len(), 3);
        for time in times {
            assert!((time - 5e-6).abs() < 1e-12);
        }
        assert_eq!(counts[counts.len() - 3..], [operations_per_batch; 3]);
    }

    #[test]
    fn a_difference_of_times_is_never_negative() {
        let time = Duration::from_micros(65);
        assert_eq!(subtract(time, 1, 70e-6), Duration::ZERO);
        assert_eq!(subtract(time, 2, 20e-6), Duration::from_micros(25));
    }

    #[test]
    fn a_batch_of_time_zero_is_a_problem() {
        let mut operation = |_: u64| Ok(Duration::ZERO);
        let problem = measure(&mut operation, &Batching::default()).expect_err("it fails");
        assert!(problem.to_string().contains("make --batch-ms longer"));
    }

    #[test]
    fn a_problem_of_an_operation_ends_the_measurement() {
        let mut operation = |_: u64| Err::<Duration, _>(Problem::failure("a byte was not zero"));
        let problem = measure(&mut operation, &Batching::default()).expect_err("it fails");
        assert_eq!(problem.to_string(), "a byte was not zero");
    }
}
