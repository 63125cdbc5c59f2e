//! Probe `memory_read`: memory that is far larger than most caches, read from end to end.

use std::hint::black_box;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::memory::{MEMORY, added_up, room_for};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::system::wrong;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "memory_read",
    class: Class::Memory,
    words: "memory that is read in order and added up",
    metric: Metric::Bandwidth,
    placements: &[Placement::None],
    size: Some(MEMORY),
    count: None,
    needs: "four times the memory that is read",
    rows: &[Row::plain("memory_read")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let words = vec![1_u64; room_for(asked.size)? / size_of::<u64>()];
    let bytes = size_of_val(words.as_slice()) as u64;
    Ok(Opened::bandwidth(bytes, move |count| {
        timed(count, || {
            let sum = added_up(black_box(&words));
            if sum != words.len() as u64 {
                return Err(wrong("the sum", sum, words.len()));
            }
            Ok(())
        })
    }))
}
