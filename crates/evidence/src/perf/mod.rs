//! What the kernel reports through `perf_event_open`: events, their rings and their records.

pub mod event;
pub mod record;
pub mod ring;
pub mod rings;
pub mod tracepoint;
