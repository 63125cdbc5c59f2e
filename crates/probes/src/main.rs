//! `equipoise-probe NAME [options]`: operating system primitives, measured in batches.

mod batches;
mod channel;
mod child;
mod cpus;
mod handlers;
mod listing;
mod memory;
mod options;
mod probe;
mod probes;
mod scratch;
mod system;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use equipoise_reporting::metrics::{Better, Outcome, Report, escaped};
use equipoise_reporting::problem::Problem;

use crate::options::{Command, Request};
use crate::probe::{Metric, OpenProbe};

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1)) {
        Ok(text) => write_out(&text),
        Err(problem) => {
            // Standard error may be closed; there is nowhere left to say so.
            let _ = std::io::stderr().write_all(error_line(&problem).as_bytes());
            ExitCode::from(problem.exit_status())
        }
    }
}

/// Does what the arguments ask for and returns the text for standard output.
fn run(arguments: impl Iterator<Item = OsString>) -> Result<String, Problem> {
    match options::read(arguments)? {
        Command::Text(text) => Ok(text),
        Command::Check(request) => check(&request).map(|()| String::new()),
        Command::Measure(request) => {
            measure(&request).and_then(|report| Outcome::Measured(report).report())
        }
    }
}

/// Finds out whether the probe works here, by one operation that is not reported.
fn check(request: &Request) -> Result<(), Problem> {
    let mut opened = open(request)?;
    opened.operation.repeat(1).map(drop)
}

fn measure(request: &Request) -> Result<Report, Problem> {
    let OpenProbe {
        mut operation,
        bytes,
        facts,
    } = open(request)?;
    let times = batches::times(operation.as_mut(), &request.batching)?;
    let report = match request.probe.metric {
        Metric::Latency => Report::default().batches("latency_s", &times, "s", Better::Lower),
        Metric::Bandwidth => {
            let rates: Vec<f64> = times.iter().map(|time| bytes as f64 / time).collect();
            Report::default().batches("bandwidth_bytes_per_s", &rates, "B/s", Better::Higher)
        }
    };
    Ok(facts
        .into_iter()
        .fold(report, |report, (name, value)| report.fact(name, value)))
}

fn open(request: &Request) -> Result<OpenProbe, Problem> {
    (request.probe.open)(&request.options)
}

/// Returns the line for standard error: JSON if the machine forbids the work, which tells this
/// apart from a broken probe.
fn error_line(problem: &Problem) -> String {
    if problem.is_unavailable() {
        format!(
            "{{\"unavailable\": \"{}\"}}\n",
            escaped(&problem.to_string())
        )
    } else {
        format!("equipoise-probe: {problem}\n")
    }
}

fn write_out(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
