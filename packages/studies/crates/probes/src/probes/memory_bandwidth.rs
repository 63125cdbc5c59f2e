//! `memory_read`, `memory_write`, `memory_copy`: read, write and copy memory in the order of
//! addresses. The memory is larger than most caches.

use std::hint::black_box;

use equipoise_reporting::problem::Problem;

use crate::memory::{MEMORY_SIZE, check_free_memory, wrapping_sum};
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, timed};
use crate::system::wrong_result;

pub const MEMORY_READ: Probe = Probe {
    name: "memory_read",
    summary: "memory that is read in order and added up",
    size: Some(MEMORY_SIZE),
    needs: "four times the memory that is read",
    ..Probe::bandwidth(Class::Memory, open_memory_read)
};

fn open_memory_read(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let words = vec![1_u64; check_free_memory(options.size)? / size_of::<u64>()];
    let bytes = size_of_val(words.as_slice()) as u64;
    Ok(OpenProbe::bandwidth(bytes, move |count| {
        timed(count, || {
            let sum = wrapping_sum(black_box(&words));
            if sum != words.len() as u64 {
                return Err(wrong_result("the sum", sum, words.len()));
            }
            Ok(())
        })
    }))
}

pub const MEMORY_WRITE: Probe = Probe {
    name: "memory_write",
    summary: "memory that is filled in order with one number",
    size: Some(MEMORY_SIZE),
    needs: "four times the memory that is written",
    ..Probe::bandwidth(Class::Memory, open_memory_write)
};

fn open_memory_write(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let mut words = vec![1_u64; check_free_memory(options.size)? / size_of::<u64>()];
    let bytes = size_of_val(words.as_slice()) as u64;
    let mut number = 1;
    Ok(OpenProbe::bandwidth(bytes, move |count| {
        let elapsed = timed(count, || {
            number += 1;
            words.fill(black_box(number));
            black_box(&mut words);
            Ok(())
        })?;
        if words.iter().any(|&word| word != number) {
            return Err(Problem::failure(
                "the memory does not hold the number that was written",
            ));
        }
        Ok(elapsed)
    }))
}

pub const MEMORY_COPY: Probe = Probe {
    name: "memory_copy",
    summary: "memory that is copied by memcpy; a byte that is copied counts once",
    size: Some(MEMORY_SIZE),
    needs: "eight times the memory that is copied",
    ..Probe::bandwidth(Class::Memory, open_memory_copy)
};

fn open_memory_copy(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let words = check_free_memory(options.size.saturating_mul(2))? / 2 / size_of::<u64>();
    let mut original = vec![1_u64; words];
    let mut copy = vec![2_u64; words];
    let bytes = size_of_val(copy.as_slice()) as u64;
    Ok(OpenProbe::bandwidth(bytes, move |count| {
        // The new content differs, so the check below would find the copy of an earlier batch.
        for end in [0, words - 1] {
            original[end] += 1;
        }
        let elapsed = timed(count, || {
            copy.copy_from_slice(black_box(&original));
            black_box(&mut copy);
            Ok(())
        })?;
        if copy != original {
            return Err(Problem::failure("the copy differs from the original"));
        }
        Ok(elapsed)
    }))
}
