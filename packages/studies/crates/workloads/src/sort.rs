//! Workload `sort`: a merge sort that allocates a scratch area for each merge.
//!
//! So it allocates blocks of every size up to the size of the array, and frees each block soon. An
//! allocator returns the largest blocks to the kernel, so each large merge faults on new pages.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::arguments::{Options, to_usize};
use crate::memory::{MemoryBaseline, minor_faults};
use crate::metrics::Report;
use crate::problem::Problem;
use crate::workload::Workload;
use equipoise_random::Draws;

pub const WORKLOAD: Workload = Workload {
    name: "sort",
    summary: "merge sort, a scratch area from malloc for each merge (--count)",
    help: "usage: equipoise-workload sort [--count N] [--repeat N]

  --count N     how many numbers of 8 bytes to sort (default 1000000)
  --repeat N    how many times to sort the same numbers (default 3)

Reports sort_s, as the mean and for each repetition; faults_per_sort, including the faults of the
array; peak_bytes and retained_bytes, the largest and the final resident memory, less the memory that
was resident before. Checks that the sorted numbers are in order and complete.
",
    run,
};

/// Length of the longest part that is sorted by insertion, without a merge.
const MAX_INSERTION_SORT: usize = 16;

fn run(options: &mut Options) -> Result<Report, Problem> {
    let (mut count, mut repeat) = (1_000_000, 3);
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "count" => count = options.number(1..=1 << 32)?,
            "repeat" => repeat = options.number(1..=1 << 20)?,
            _ => return Err(options.unknown_option()),
        }
    }
    // The count is the seed: the same count gives the same numbers.
    let draws = Draws::from_seed(count);
    let baseline = MemoryBaseline::now();
    let faults_before = minor_faults();
    let mut times = Vec::with_capacity(to_usize(repeat));
    for _ in 0..repeat {
        times.push(time_sort(draws, count)?);
    }
    let faults_per_sort = (minor_faults() - faults_before) as f64 / repeat as f64;
    let report = Report::default().times("sort_s", &times);
    Ok(baseline.add_to(report.cost("faults_per_sort", faults_per_sort, "1")))
}

fn time_sort(draws: Draws, count: u64) -> Result<Duration, Problem> {
    let mut numbers: Vec<f64> = (0..count).map(|index| draws.uniform_at(index)).collect();
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

/// Returns a checksum that does not depend on the order of the numbers.
fn fingerprint(numbers: &[f64]) -> u64 {
    // A generator whose seed is the number hashes the number.
    numbers.iter().fold(0, |sum, number| {
        sum.wrapping_add(Draws::from_seed(number.to_bits()).bits_at(0))
    })
}

fn merge_sort(numbers: &mut [f64]) {
    if numbers.len() <= MAX_INSERTION_SORT {
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
        let mut index = end;
        while index > 0 && numbers[index - 1] > number {
            numbers[index] = numbers[index - 1];
            index -= 1;
        }
        numbers[index] = number;
    }
}

/// Merges two sorted parts: the numbers before `middle`, and the numbers from `middle` on.
fn merge(numbers: &mut [f64], middle: usize) {
    // Rust allocates by malloc; `black_box` prevents the compiler from removing the allocation.
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
    use crate::counting_allocator::allocations_of;
    use equipoise_random::Draws;

    fn numbers(count: u64) -> Vec<f64> {
        (0..count)
            .map(|index| (Draws::from_seed(3).uniform_at(index) * 50.0).floor())
            .collect()
    }

    #[test]
    fn the_merge_sort_sorts_as_the_standard_library_does() {
        for count in [0, 1, 2, 16, 17, 33, 1000] {
            let mut sorted = numbers(count);
            let mut expected = sorted.clone();
            merge_sort(&mut sorted);
            expected.sort_by(f64::total_cmp);
            assert_eq!(sorted, expected);
        }
    }

    #[test]
    fn the_fingerprint_depends_on_the_numbers_but_not_on_their_order() {
        let unsorted = numbers(100);
        let mut reversed = unsorted.clone();
        reversed.reverse();
        assert_eq!(fingerprint(&unsorted), fingerprint(&reversed));
        reversed[0] += 1.0;
        assert_ne!(fingerprint(&unsorted), fingerprint(&reversed));
    }

    #[test]
    fn each_merge_allocates_a_scratch_area_of_its_size() {
        let mut unsorted = numbers(1024);
        for (size, areas) in [(1024, 1), (512, 2), (32, 32), (16, 0)] {
            let (counted, ()) = allocations_of(size * 8..=size * 8, || merge_sort(&mut unsorted));
            assert_eq!(counted, areas, "areas of {size} numbers");
        }
    }
}
