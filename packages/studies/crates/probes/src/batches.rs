//! Batches: each has enough operations for the resolution of the clock, and a separate time.

use std::time::{Duration, Instant};

use equipoise_reporting::metrics::median;
use equipoise_reporting::problem::Problem;

use crate::probe::Operation;

/// Number and length of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Number of batches.
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

/// Most by which a try may have more operations than the one before. A try that lasted a sixteenth
/// of a batch is long enough to say how many operations a whole batch needs; a shorter one is not.
const FASTEST_GROWTH: f64 = 16.0;

/// Number of attempts: from one operation of a nanosecond to the longest batch, and some more.
const MAX_TRIES: u32 = 16;

/// Seconds of one operation in each batch, and the number of operations in a batch.
#[derive(Debug)]
pub struct Batches {
    /// Seconds of one operation.
    pub times: Vec<f64>,
    /// Number of operations of each batch.
    pub operations: u64,
}

/// Measures the seconds of one operation in each batch; a time of 0 is an error.
pub fn times(operation: &mut dyn Operation, batching: &Batching) -> Result<Batches, Problem> {
    let count = calibrate(batching.duration, |count| {
        let started = Instant::now();
        operation.repeat(count)?;
        Ok(started.elapsed())
    })?;
    let times = (0..batching.batches)
        .map(|_| {
            let took = operation.repeat(count)?;
            if took.is_zero() {
                return Err(Problem::failure(format!(
                    "{count} operations took no time at all, or no more than what is subtracted \
                     from each; make --batch-ms longer"
                )));
            }
            Ok(took.as_secs_f64() / count as f64)
        })
        .collect::<Result<_, _>>()?;
    Ok(Batches {
        times,
        operations: count,
    })
}

/// Returns the seconds of an operation, to subtract them from those of another: the median of some
/// short batches, because a disturbance of a single batch does not change the median.
pub fn time_to_subtract(operation: &mut dyn Operation) -> Result<f64, Problem> {
    let batching = Batching {
        duration: Duration::from_micros(500),
        ..Batching::default()
    };
    median(&times(operation, &batching)?.times)
        .ok_or_else(|| Problem::failure("there was no batch"))
}

/// Subtracts the time of an operation that is part of each of `count` operations. The result is at
/// least 0, also if a single operation was shorter than that.
pub fn subtract(took: Duration, count: u64, part_s: f64) -> Duration {
    let rest = took.as_secs_f64() - part_s * count as f64;
    Duration::try_from_secs_f64(rest).unwrap_or_default()
}

/// Finds the number of operations that last about `duration`. Running them also warms up.
fn calibrate(
    duration: Duration,
    mut wall_time_of: impl FnMut(u64) -> Result<Duration, Problem>,
) -> Result<u64, Problem> {
    // The first operation of all is colder than any other.
    wall_time_of(1)?;
    let mut count = 1;
    for _ in 0..MAX_TRIES {
        let wall_time = wall_time_of(count)?.max(Duration::from_nanos(1));
        let short_by = duration.as_secs_f64() / wall_time.as_secs_f64();
        count = scaled(count, short_by.min(FASTEST_GROWTH));
        if short_by <= FASTEST_GROWTH {
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
fn scaled(count: u64, factor: f64) -> u64 {
    ((count as f64 * factor).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_millis(10);

    /// Calibrates operations of some nanoseconds; returns the count and the time spent.
    fn calibrated(nanoseconds: f64) -> (u64, f64) {
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
            let (count, _) = calibrated(nanoseconds);
            let batch = count as f64 * nanoseconds * 1e-9;
            let difference = (batch - DURATION.as_secs_f64()).abs();
            assert!(
                difference <= nanoseconds * 1e-9,
                "{nanoseconds} ns: a batch of {batch} s"
            );
        }
    }

    #[test]
    fn finding_the_count_costs_about_one_batch_at_most() {
        for nanoseconds in [1.0, 83.0, 12_345.0, 700_000.0] {
            let (_, spent) = calibrated(nanoseconds);
            assert!(
                spent < 1.1 * DURATION.as_secs_f64(),
                "{nanoseconds}: {spent}"
            );
        }
    }

    #[test]
    fn an_operation_longer_than_a_batch_is_done_once() {
        assert_eq!(calibrated(50_000_000.0).0, 1);
    }

    #[test]
    fn the_time_of_each_batch_is_kept_for_one_operation() {
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
        let Batches { times, operations } =
            times(&mut operation, &batching).expect("no operation fails");
        assert_eq!(times.len(), 3);
        for time in times {
            assert!((time - 5e-6).abs() < 1e-12);
        }
        assert_eq!(counts[counts.len() - 3..], [operations; 3]);
    }

    #[test]
    fn a_shorter_time_than_is_subtracted_leaves_nothing() {
        let took = Duration::from_micros(65);
        assert_eq!(subtract(took, 1, 70e-6), Duration::ZERO);
        assert_eq!(subtract(took, 2, 20e-6), Duration::from_micros(25));
    }

    #[test]
    fn batches_of_no_time_are_a_problem() {
        let mut operation = |_: u64| Ok(Duration::ZERO);
        let problem = times(&mut operation, &Batching::default()).expect_err("it fails");
        assert!(problem.to_string().contains("make --batch-ms longer"));
    }

    #[test]
    fn a_problem_ends_the_batches() {
        let mut operation = |_: u64| Err::<Duration, _>(Problem::failure("a byte was not zero"));
        let problem = times(&mut operation, &Batching::default()).expect_err("it fails");
        assert_eq!(problem.to_string(), "a byte was not zero");
    }
}
