//! Reads the records that the kernel reports through `perf_event_open`.
//!
//! - `rings`: opens events on every processor, with ring buffers for their records.
//! - `record`: parses the records in a ring.
//! - `tracepoint`: finds the ids of tracepoints.

pub mod record;
pub mod rings;
pub mod tracepoint;
