//! `equipoise-probe NAME [options]`: measures an operating system primitive in batches.

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

use std::process::ExitCode;

use equipoise_kernel::clock::monotonic_resolution_s;
use equipoise_reporting::metrics::{Better, Report};
use equipoise_reporting::problem::Problem;
use equipoise_reporting::program::finish;
use lexopt::Parser;

use crate::options::{Command, Request};
use crate::probe::{Metric, OpenProbe};

fn main() -> ExitCode {
    finish(
        "equipoise-probe",
        options::parse(Parser::from_env()).and_then(run),
    )
}

fn run(command: Command) -> Result<String, Problem> {
    match command {
        Command::Text(text) => Ok(text),
        // One operation shows whether the probe works here. It is not reported.
        Command::Check(request) => {
            open(&request)?.operation.repeat(1)?;
            Ok(String::new())
        }
        Command::Measure(request) => measure(&request)?.publish(),
    }
}

fn measure(request: &Request) -> Result<Report, Problem> {
    let OpenProbe {
        mut operation,
        bytes_per_operation,
        facts: probe_facts,
    } = open(request)?;
    let batches::Batches {
        times,
        operations_per_batch,
    } = batches::measure(operation.as_mut(), &request.batching)?;
    let resolution_s = monotonic_resolution_s() / operations_per_batch as f64;
    let report = match request.probe.metric {
        Metric::Latency => {
            Report::default().batches("latency_s", &times, "s", Better::Lower, |_| resolution_s)
        }
        Metric::Bandwidth => {
            let bytes = bytes_per_operation as f64;
            let rates: Vec<f64> = times.iter().map(|time| bytes / time).collect();
            // The rate is the inverse of the time, so both have the same relative resolution.
            let resolution = |rate: f64| rate * resolution_s / (bytes / rate);
            let name = "bandwidth_bytes_per_s";
            Report::default().batches(name, &rates, "B/s", Better::Higher, resolution)
        }
    };
    Ok(probe_facts
        .into_iter()
        .fold(report, |report, (name, value)| report.fact(name, value)))
}

fn open(request: &Request) -> Result<OpenProbe, Problem> {
    (request.probe.open)(&request.options)
}
