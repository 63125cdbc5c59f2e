//! The kernel's interfaces that more than one program of Equipoise uses.
//!
//! - [`call`]: the results of system calls.
//! - [`child`]: children that are waited for.
//! - [`clock`]: the monotonic clock.
//! - [`cpus`]: sets of CPUs, and on which of them a thread may run.
//! - [`perf`]: events of `perf_event_open`.

pub mod call;
pub mod child;
pub mod clock;
pub mod cpus;
pub mod perf;
