//! Workload `sort`: a merge sort that allocates the way a C program does.
//!
//! Each merge takes a scratch area from malloc and gives it back: blocks of every size up to the
//! whole array, each freed soon, the largest ones beyond any threshold.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::arguments::{Options, to_usize};
use crate::memory::{Held, minor_faults};
use crate::metrics::Report;
use crate::problem::Problem;
use crate::workload::Workload;
use equipoise_random::Draws;

pub const WORKLOAD: Workload = Workload {
    name: "sort",
    summary: "merge sort, a scratch area from malloc for each merge (--count)",
    help: "usage: equipoise-workload sort [--count N] [--repeat N]

  --count N     numbers of 8 bytes (default 1000000)
  --repeat N    sort the same numbers so many times (default 3)

Reports sort_s, as the mean and for each repetition; faults_per_sort, its array
included; peak_bytes and retained_bytes: what was resident at most, and after all, beyond what was
resident before. It is checked that the numbers are in order and are those of the start.
",
    run,
};

/// Pieces of at most this many numbers are sorted by insertion.
const SHORT: usize = 16;

/// Reads the options and does the work.
fn run(options: &mut Options) -> Result<Report, Problem> {
    let (mut count, mut repeat) = (1_000_000, 3);
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "count" => count = options.number(1..=1 << 32)?,
            "repeat" => repeat = options.number(1..=1 << 20)?,
            _ => return Err(options.unknown()),
        }
    }
    let draws = Draws::new(count);
    let held = Held::now();
    let faults = minor_faults();
    let mut times = Vec::with_capacity(to_usize(repeat));
    for _ in 0..repeat {
        times.push(one_sort(draws, count)?);
    }
    let faults = (minor_faults() - faults) as f64 / repeat as f64;
    let report = Report::default().times("sort_s", &times);
    Ok(held.add_to(report.cost("faults_per_sort", faults, "1")))
}

/// The time of one sort, with a check of the result.
fn one_sort(draws: Draws, count: u64) -> Result<Duration, Problem> {
    let mut numbers: Vec<f64> = (0..count).map(|number| draws.uniform(number)).collect();
    let expected = fingerprint(&numbers);
    let started = Instant::now();
    merge_sort(&mut numbers);
    let elapsed = started.elapsed();
    if numbers.is_sorted() && fingerprint(&numbers) == expected {
        Ok(elapsed)
    } else {
        Err(Problem::failure("the numbers were sorted wrongly"))
    }
}

/// Checksum that is the same for the same numbers in any order, and differs for nearly all others.
fn fingerprint(numbers: &[f64]) -> u64 {
    numbers.iter().fold(0, |sum, number| {
        sum.wrapping_add(Draws::new(number.to_bits()).bits(0))
    })
}

fn merge_sort(numbers: &mut [f64]) {
    if numbers.len() <= SHORT {
        insertion_sort(numbers);
        return;
    }
    let middle = numbers.len() / 2;
    merge_sort(&mut numbers[..middle]);
    merge_sort(&mut numbers[middle..]);
    merge(numbers, middle);
}

fn insertion_sort(numbers: &mut [f64]) {
    for end in 1..numbers.len() {
        let number = numbers[end];
        let mut place = end;
        while place > 0 && numbers[place - 1] > number {
            numbers[place] = numbers[place - 1];
            place -= 1;
        }
        numbers[place] = number;
    }
}

/// Merges the parts before and from `middle`, each in order.
fn merge(numbers: &mut [f64], middle: usize) {
    // Rust's allocator is malloc, and black_box keeps the compiler from merging the areas.
    let mut scratch = black_box(Vec::with_capacity(numbers.len()));
    let (mut left, mut right) = (0, middle);
    while left < middle && right < numbers.len() {
        if numbers[right] < numbers[left] {
            scratch.push(numbers[right]);
            right += 1;
        } else {
            scratch.push(numbers[left]);
            left += 1;
        }
    }
    scratch.extend_from_slice(&numbers[left..middle]);
    scratch.extend_from_slice(&numbers[right..]);
    numbers.copy_from_slice(&scratch);
}

#[cfg(test)]
mod tests {
    use super::{fingerprint, merge_sort};
    use crate::counting::allocations_of;
    use equipoise_random::Draws;

    fn numbers(count: u64) -> Vec<f64> {
        (0..count)
            .map(|number| (Draws::new(3).uniform(number) * 50.0).floor())
            .collect()
    }

    #[test]
    fn it_sorts_as_the_standard_library_does() {
        for count in [0, 1, 2, 16, 17, 33, 1000] {
            let mut ours = numbers(count);
            let mut theirs = ours.clone();
            merge_sort(&mut ours);
            theirs.sort_by(f64::total_cmp);
            assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn the_fingerprint_knows_the_numbers_but_not_their_order() {
        let unsorted = numbers(100);
        let mut turned = unsorted.clone();
        turned.reverse();
        assert_eq!(fingerprint(&unsorted), fingerprint(&turned));
        turned[0] += 1.0;
        assert_ne!(fingerprint(&unsorted), fingerprint(&turned));
    }

    #[test]
    fn each_merge_takes_a_scratch_area_of_its_size() {
        let mut unsorted = numbers(1024);
        for (size, areas) in [(1024, 1), (512, 2), (32, 32), (16, 0)] {
            let (counted, ()) = allocations_of(size * 8..=size * 8, || merge_sort(&mut unsorted));
            assert_eq!(counted, areas, "areas of {size} numbers");
        }
    }
}
