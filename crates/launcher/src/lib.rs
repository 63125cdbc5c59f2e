//! Starts, times and accounts for one trial at a time.
//!
//! A campaign has one launcher. It is small, because the peak memory of a child is never below that
//! of the process that started it, and it does nothing else inside the timed region. Requests and
//! reports are JSON lines.
//!
//! - [`serve`]: sets the launcher up, and serves one request after the other.
//! - [`trial`]: one trial, from its request to its report.
//! - [`spawn`], [`clone`], [`settings`]: starts a program.
//! - [`account`], [`counters`], [`perf`]: what a trial consumed.
//! - [`contain`], [`cgroup`]: ends every descendant of a trial.
//! - [`output`]: files that take what a trial writes.
//! - [`conversation`], [`protocol`], [`options`]: the pipe, its JSON lines, the command line.
//! - [`memory`], [`signals`]: the launcher's own memory and signals.

pub mod account;
pub mod cgroup;
pub mod clone;
pub mod contain;
pub mod conversation;
pub mod counters;
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
