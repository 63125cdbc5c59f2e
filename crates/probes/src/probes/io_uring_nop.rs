//! Probe `io_uring_nop`: nothing, handed over by `io_uring` many times at once.

use io_uring::opcode::Nop;

use crate::probe::{Class, Metric, Placement, Probe, Row};
use crate::submissions::{self, BATCH, NEEDS};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "io_uring_nop",
    class: Class::SystemCalls,
    words: "an operation that does nothing, handed over by io_uring 32 at a time",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: Some(BATCH),
    needs: NEEDS,
    rows: &[Row::plain("io_uring_nop")],
    // SAFETY: the operation points to nothing.
    open: |asked| unsafe { submissions::open(asked, Nop::new().build(), 0, ()) },
};
