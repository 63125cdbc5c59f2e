//! Starts, times and accounts for one trial at a time.
//!
//! A campaign has one launcher. It is small, because the peak memory of a child is never
//! below that of the process that started it, and it holds nothing but the child inside the
//! timed region. It is spoken to in JSON lines (see [`protocol`]).

pub mod account;
pub mod affinity;
pub mod cgroup;
pub mod clock;
pub mod clone;
pub mod contain;
pub mod conversation;
pub mod counters;
pub mod ending;
pub mod memory;
pub mod options;
pub mod output;
pub mod perf;
pub mod protocol;
pub mod serve;
pub mod settings;
pub mod signals;
pub mod spawn;
pub mod trial;
