//! `equipoise-probe NAME [options]`: operating system primitives, measured in batches.

mod asked;
mod batches;
mod channel;
mod child;
mod connections;
mod cpus;
mod file_system;
mod fixed_path;
mod handlers;
mod helper;
mod listing;
mod mapping;
mod memory;
mod new_files;
mod probe;
mod probes;
mod reread;
mod round_trip;
mod rounds;
mod scratch;
mod small;
mod sockets;
mod submissions;
mod system;
mod threads;
mod transfer;
mod working_set;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use equipoise_reporting::metrics::{Better, Outcome, Report, escaped};
use equipoise_reporting::problem::Problem;

use crate::asked::{Asked, Request, Wanted};
use crate::probe::{Metric, Opened};

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1)) {
        Ok(text) => write_out(&text),
        Err(problem) => {
            // Standard error may be closed; there is nowhere left to say so.
            let _ = std::io::stderr().write_all(line_of(&problem).as_bytes());
            ExitCode::from(problem.exit_status())
        }
    }
}

/// Does what the arguments ask for and gives back what belongs on standard output.
fn run(arguments: impl Iterator<Item = OsString>) -> Result<String, Problem> {
    match asked::read(arguments)? {
        Wanted::Text(text) => Ok(text),
        Wanted::Check(request) => check(&request).map(|()| String::new()),
        Wanted::Measure(request) => {
            measure(&request).and_then(|report| Outcome::Measured(report).report())
        }
    }
}

/// Whether the probe works here: one operation, of which nothing is said.
fn check(request: &Request) -> Result<(), Problem> {
    let mut opened = open(request)?;
    opened.operation.repeat(1).map(drop)
}

fn measure(request: &Request) -> Result<Report, Problem> {
    let Opened {
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

fn open(request: &Request) -> Result<Opened, Problem> {
    let asked: &Asked = &request.asked;
    (request.probe.open)(asked)
}

/// What stands on standard error: JSON if the machine forbids the work, so that whoever runs
/// probes can tell that from a probe that is broken.
fn line_of(problem: &Problem) -> String {
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
