//! `equipoise-evidence SOURCE [options] -- COMMAND…`: observes one run of a command.

mod allocations;
mod calls;
mod clock;
mod command;
mod perf;
mod problem;
mod profile;
mod stacks;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::{Arg, Parser, ValueExt};
use serde::Serialize;

use crate::calls::Method;
use crate::problem::Problem;
use crate::profile::What;

const USAGE: &str =
    "usage: equipoise-evidence calls [--method best|tracepoints|ptrace] --output FILE -- COMMAND…
       equipoise-evidence profile|faults|waits [--frequency HZ] --output FILE -- COMMAND…
       equipoise-evidence allocations --output FILE -- FOLDER

Runs the command and writes what it observed to FILE, as JSON; the last reads what
libequipoise_recorder.so has recorded in FOLDER. Exits with 0 if it could observe, however the
command ended; with 1 if it could not, with 2 if it cannot be used like that.
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // Standard error may be closed; there is nowhere left to say so.
            let _ = writeln!(std::io::stderr(), "equipoise-evidence: {problem}");
            ExitCode::from(problem.exit_status)
        }
    }
}

fn run() -> Result<(), Problem> {
    let mut parser = Parser::from_env();
    match parser.next()? {
        Some(Arg::Value(source)) if source == "calls" => {
            let options = Options::read(parser)?;
            let report = calls::observe(options.method, options.command)?;
            write(&options.output, &report)
        }
        Some(Arg::Value(source)) if sampled(&source).is_some() => {
            let options = Options::read(parser)?;
            let what = sampled(&source).unwrap_or(What::Time);
            let report = profile::observe(what, options.frequency, options.command)?;
            write(&options.output, &report)
        }
        Some(Arg::Value(source)) if source == "allocations" => {
            let options = Options::read(parser)?;
            let [folder] = options.command.as_slice() else {
                return Err(Problem::usage("allocations wants one folder"));
            };
            write(&options.output, &allocations::stacks(Path::new(folder))?)
        }
        Some(Arg::Long("help") | Arg::Short('h')) => {
            // Standard output may be closed; there is nowhere left to say so.
            let _ = std::io::stdout().write_all(USAGE.as_bytes());
            Ok(())
        }
        _ => Err(Problem::usage(USAGE)),
    }
}

fn sampled(source: &OsStr) -> Option<What> {
    match source.to_str()? {
        "profile" => Some(What::Time),
        "faults" => Some(What::Faults),
        "waits" => Some(What::Waits),
        _ => None,
    }
}

/// Samples a second: not a multiple of what else may be regular.
const FREQUENCY: u64 = 999;

struct Options {
    method: Method,
    frequency: u64,
    output: PathBuf,
    command: Vec<OsString>,
}

impl Options {
    fn read(mut parser: Parser) -> Result<Self, Problem> {
        let mut method = Method::Best;
        let mut frequency = FREQUENCY;
        let mut output = None;
        let mut command = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Arg::Long("method") => {
                    method = match parser.value()?.string()?.as_str() {
                        "best" => Method::Best,
                        "tracepoints" => Method::Tracepoints,
                        "ptrace" => Method::Ptrace,
                        other => return Err(Problem::usage(format!("no method {other:?}"))),
                    }
                }
                Arg::Long("frequency") => frequency = parser.value()?.parse()?,
                Arg::Long("output") => output = Some(PathBuf::from(parser.value()?)),
                Arg::Value(word) => {
                    command.push(word);
                    command.extend(parser.raw_args()?);
                }
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(Self {
            method,
            frequency,
            output: output.ok_or_else(|| Problem::usage("no --output FILE"))?,
            command,
        })
    }
}

fn write(file: &PathBuf, report: &impl Serialize) -> Result<(), Problem> {
    let text = serde_json::to_vec(report)
        .map_err(|error| Problem::failure(format!("{}: {error}", file.display())))?;
    fs::write(file, text).map_err(|error| Problem::system(&file.display().to_string(), &error))
}
