//! System calls of a command and its descendants: by name, count, time and typical arguments;
//! files and sockets with their bytes; waits on locks.

mod account;
mod by_ptrace;
mod by_tracepoint;
mod descriptors;
mod kinds;
mod locks;
mod moment;
mod report;
mod sizes;

use std::ffi::OsString;

use crate::clock::monotonic_ns;
use crate::problem::Problem;

pub use report::Report;

/// How the kernel is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By tracepoints, and by `ptrace` where they are forbidden.
    Best,
    Tracepoints,
    Ptrace,
}

/// Runs the command and observes its system calls.
///
/// # Errors
/// The command cannot be executed, or the method cannot be had.
pub fn observe(method: Method, command: Vec<OsString>) -> Result<Report, Problem> {
    let forbidden = match method {
        Method::Ptrace => None,
        Method::Best | Method::Tracepoints => match by_tracepoint::prepare() {
            Ok(tracepoints) => {
                let held = crate::command::hold(command)?;
                let started_ns = monotonic_ns();
                let seen = by_tracepoint::observe(&tracepoints, held)?;
                return Ok(Report::new("tracepoints", started_ns, seen));
            }
            Err(why) => Some(why),
        },
    };
    if let (Method::Tracepoints, Some(why)) = (method, &forbidden) {
        return Err(Problem::failure(format!("tracepoints: {why}")));
    }
    let held = crate::command::hold(command)?;
    let started_ns = monotonic_ns();
    let mut seen = by_ptrace::observe(held)?;
    if let Some(why) = forbidden {
        seen.remarks
            .push(format!("every call was stopped twice by ptrace: {why}"));
    }
    Ok(Report::new("ptrace", started_ns, seen))
}

/// What a method saw.
struct Seen {
    account: account::Account,
    end: crate::command::End,
    /// What it could not see, in words.
    remarks: Vec<String>,
}
