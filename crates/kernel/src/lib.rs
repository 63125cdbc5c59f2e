//! Interfaces of the Linux kernel that several programs of Equipoise use.
//!
//! - [`call`]: results of system calls.
//! - [`child`]: waiting for child processes.
//! - [`clock`]: the monotonic clock.
//! - [`cpus`]: sets of CPUs, and the set on which a thread may run.
//! - [`perf`]: opening events of `perf_event_open`.

pub mod call;
pub mod child;
pub mod clock;
pub mod cpus;
pub mod perf;
