//! Probe `memory_write`: memory that is far larger than most caches, written from end to end.

use std::hint::black_box;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::memory::{MEMORY, room_for};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "memory_write",
    class: Class::Memory,
    words: "memory that is filled in order with one number",
    metric: Metric::Bandwidth,
    placements: &[Placement::None],
    size: Some(MEMORY),
    count: None,
    needs: "four times the memory that is written",
    rows: &[Row::plain("memory_write")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let mut words = vec![1_u64; room_for(asked.size)? / size_of::<u64>()];
    let bytes = size_of_val(words.as_slice()) as u64;
    let mut number = 1;
    Ok(Opened::bandwidth(bytes, move |count| {
        let took = timed(count, || {
            number += 1;
            words.fill(black_box(number));
            black_box(&mut words);
            Ok(())
        })?;
        if words.iter().any(|&word| word != number) {
            return Err(Problem::failure("what was written is not there"));
        }
        Ok(took)
    }))
}
