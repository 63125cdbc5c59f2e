//! Observes the system calls of a command and its descendants, their files and waits on locks.
//!
//! `by_tracepoint` or `by_ptrace` observes the events of threads (`event`). `account` adds them up,
//! with `kinds` of system calls, `descriptors` and `locks`. `report` makes the JSON document.

mod account;
mod by_ptrace;
mod by_tracepoint;
mod descriptors;
mod event;
mod kinds;
mod locks;
mod report;

use std::ffi::OsString;

use equipoise_kernel::clock::monotonic_ns;
use equipoise_reporting::problem::Problem;

pub use report::Report;

/// The way in which system calls are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By tracepoints; by `ptrace` if tracepoints are forbidden.
    Best,
    Tracepoints,
    Ptrace,
}

/// Runs the command and observes its system calls.
pub fn observe(method: Method, command: Vec<OsString>) -> Result<Report, Problem> {
    let tracepoint_error = match method {
        Method::Ptrace => None,
        Method::Best | Method::Tracepoints => match by_tracepoint::find_usable() {
            Ok(tracepoints) => {
                let paused = crate::command::start_paused(command)?;
                let started_ns = monotonic_ns();
                let observation = by_tracepoint::observe(&tracepoints, paused)?;
                return Ok(Report::new("tracepoints", started_ns, observation));
            }
            Err(reason) => Some(reason),
        },
    };
    if let (Method::Tracepoints, Some(reason)) = (method, &tracepoint_error) {
        return Err(Problem::failure(format!(
            "tracepoints cannot be used: {reason}; leave out --method to use ptrace"
        )));
    }
    let paused = crate::command::start_paused(command)?;
    let started_ns = monotonic_ns();
    let mut observation = by_ptrace::observe(paused)?;
    if let Some(reason) = tracepoint_error {
        observation.remarks.push(format!(
            "every call was stopped twice by ptrace, because tracepoints cannot be used: {reason}"
        ));
    }
    Ok(Report::new("ptrace", started_ns, observation))
}
