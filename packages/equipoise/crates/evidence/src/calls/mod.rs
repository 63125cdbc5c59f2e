//! System calls of a command and its descendants: by name, count, time and typical arguments;
//! files and sockets with their bytes; waits on locks.

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

/// How system calls are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By tracepoints, and by `ptrace` where they are forbidden.
    Best,
    Tracepoints,
    Ptrace,
}

/// Runs the command and observes its system calls.
pub fn observe(method: Method, command: Vec<OsString>) -> Result<Report, Problem> {
    let forbidden = match method {
        Method::Ptrace => None,
        Method::Best | Method::Tracepoints => match by_tracepoint::prepare() {
            Ok(tracepoints) => {
                let paused = crate::command::start_paused(command)?;
                let started_ns = monotonic_ns();
                let observation = by_tracepoint::observe(&tracepoints, paused)?;
                return Ok(Report::new("tracepoints", started_ns, observation));
            }
            Err(why) => Some(why),
        },
    };
    if let (Method::Tracepoints, Some(why)) = (method, &forbidden) {
        return Err(Problem::failure(format!("tracepoints: {why}")));
    }
    let paused = crate::command::start_paused(command)?;
    let started_ns = monotonic_ns();
    let mut observation = by_ptrace::observe(paused)?;
    if let Some(why) = forbidden {
        observation
            .remarks
            .push(format!("every call was stopped twice by ptrace: {why}"));
    }
    Ok(Report::new("ptrace", started_ns, observation))
}
