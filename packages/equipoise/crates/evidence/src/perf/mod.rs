//! Records that the kernel reports through `perf_event_open`.
//!
//! - `rings`: events on every processor, and their rings.
//! - `record`: the records in a ring.
//! - `tracepoint`: the numbers of tracepoints.

pub mod record;
pub mod rings;
pub mod tracepoint;
