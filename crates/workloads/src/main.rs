//! `equipoise-workload NAME [options]`: the built-in workloads of Equipoise.

mod blas;
mod block;
mod calls;
#[cfg(test)]
mod counting;
mod dgemm;
mod fragment;
mod genmatch2006;
mod hashwalk;
mod invert;
mod library;
mod malloc;
mod memory;
mod registry;
mod residual;
mod sort;
mod spin;
mod step;
mod words;
mod wordsearch;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use equipoise_reporting::{arguments, metrics, problem};
use lexopt::{Arg, Parser};

use crate::problem::Problem;
use crate::registry::{WORKLOADS, Workload};

const USAGE: &str = "usage: equipoise-workload NAME [options]
       equipoise-workload NAME --help
       equipoise-workload --list
";

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1)) {
        Ok(text) => write_out(&text),
        Err(problem) => {
            // Standard error may be closed; there is nowhere left to say so.
            let _ = writeln!(std::io::stderr(), "equipoise-workload: {problem}");
            ExitCode::from(problem.exit_status())
        }
    }
}

/// Runs the command of the arguments, and returns the text for standard output.
fn run(arguments: impl Iterator<Item = OsString>) -> Result<String, Problem> {
    let mut parser = Parser::from_args(arguments);
    match parser.next()? {
        Some(Arg::Long("list")) => Ok(listing()),
        Some(Arg::Long("help") | Arg::Short('h')) => Ok(format!("{USAGE}\n{}", listing())),
        Some(Arg::Value(name)) => {
            let workload = find(&name.to_string_lossy())?;
            (workload.run)(&mut parser)
                .map_err(|problem| problem.within(workload.name))
                .and_then(|outcome| outcome.report())
        }
        Some(other) => Err(other.unexpected().into()),
        None => Err(Problem::usage(format!(
            "no workload named; one of: {}",
            names()
        ))),
    }
}

fn find(name: &str) -> Result<&'static Workload, Problem> {
    WORKLOADS
        .iter()
        .find(|workload| workload.name == name)
        .ok_or_else(|| Problem::usage(format!("no workload `{name}`; one of: {}", names())))
}

fn names() -> String {
    WORKLOADS.map(|workload| workload.name).join(", ")
}

fn listing() -> String {
    WORKLOADS
        .map(|workload| {
            format!(
                "{:<14}{}
",
                workload.name, workload.summary
            )
        })
        .concat()
}

fn write_out(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
