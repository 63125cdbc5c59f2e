//! Probe `memory_copy`: memory that is far larger than most caches, copied from end to end.

use std::hint::black_box;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::memory::{MEMORY, room_for};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "memory_copy",
    class: Class::Memory,
    words: "memory that is copied by memcpy; a byte that is copied counts once",
    metric: Metric::Bandwidth,
    placements: &[Placement::None],
    size: Some(MEMORY),
    count: None,
    needs: "eight times the memory that is copied",
    rows: &[Row::plain("memory_copy")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let words = room_for(asked.size.saturating_mul(2))? / 2 / size_of::<u64>();
    let mut original = vec![1_u64; words];
    let mut copy = vec![2_u64; words];
    let bytes = size_of_val(copy.as_slice()) as u64;
    Ok(Opened::bandwidth(bytes, move |count| {
        // So that the copy of an earlier batch would be found out.
        for end in [0, words - 1] {
            original[end] += 1;
        }
        let took = timed(count, || {
            copy.copy_from_slice(black_box(&original));
            black_box(&mut copy);
            Ok(())
        })?;
        if copy != original {
            return Err(Problem::failure("the copy is not the original"));
        }
        Ok(took)
    }))
}
