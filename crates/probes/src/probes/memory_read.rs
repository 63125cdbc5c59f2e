//! Probe `memory_read`: memory that is far larger than most caches, read from end to end.

use std::hint::black_box;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::memory::room_for;
use crate::probe::{Class, Metric, Opened, Parameter, Placement, Probe, Row, timed};
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

/// How much is read, written or copied at once.
pub const MEMORY: Parameter = Parameter {
    words: "bytes of memory",
    default: 64 << 20,
    least: 64,
    most: 16 << 30,
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

/// The sum, by as many additions at once as the processor has.
pub fn added_up(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}
