//! Reads the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

use equipoise_reporting::problem::Problem;

use crate::calls::Method;
use crate::profile::Sampling;

pub const USAGE: &str =
    "usage: equipoise-evidence calls [--method best|tracepoints|ptrace] --output FILE -- COMMAND…
       equipoise-evidence profile|faults|waits [--frequency HZ] --output FILE -- COMMAND…
       equipoise-evidence allocations --output FILE -- FOLDER
       equipoise-evidence flame-graph|firefox --output FILE -- CONDITIONS

Runs the command and writes what it observed to FILE, as JSON; allocations reads what
libequipoise_recorder.so has recorded in FOLDER. flame-graph and firefox draw the stacks of the two
conditions in the file CONDITIONS, as SVG or as a profile for profiler.firefox.com. The exit status
is 0 if the command was observed, however it ended; 1 if it was not; 2 for a wrong command line.
";

/// The task that the command line requests.
pub enum Request {
    Help,
    Evidence {
        source: Source,
        output: PathBuf,
    },
    Picture {
        picture: Picture,
        conditions: PathBuf,
        output: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    FlameGraph,
    Firefox,
}

/// The source of evidence, with its options.
pub enum Source {
    Calls {
        method: Method,
        command: Vec<OsString>,
    },
    Stacks {
        sampling: Sampling,
        frequency: u64,
        command: Vec<OsString>,
    },
    /// Folder with the recordings of `libequipoise_recorder.so`.
    Recordings(PathBuf),
}

/// Samples per second by default; a round number such as 1000 could coincide with a timer.
const DEFAULT_FREQUENCY_HZ: u64 = 999;

/// Returns the request of the command line.
pub fn read(mut parser: Parser) -> Result<Request, Problem> {
    let name = match parser.next()? {
        Some(Arg::Value(name)) => name.string()?,
        Some(Arg::Long("help") | Arg::Short('h')) => return Ok(Request::Help),
        _ => return Err(Problem::usage(USAGE)),
    };
    let mut method = None;
    let mut frequency = None;
    let mut output = None;
    let mut arguments = Vec::new();
    let sampling = sampling_of(&name);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("method") if name == "calls" => method = Some(read_method(&mut parser)?),
            Arg::Long("frequency") if sampling.is_some() => {
                frequency = Some(parser.value()?.parse()?);
            }
            Arg::Long("output") => output = Some(PathBuf::from(parser.value()?)),
            Arg::Value(argument) => {
                arguments.push(argument);
                arguments.extend(parser.raw_args()?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let output = output.ok_or_else(|| Problem::usage("--output FILE is missing"));
    if let Some(picture) = picture_of(&name) {
        let conditions = single_path(&name, arguments)?;
        let output = output?;
        return Ok(Request::Picture {
            picture,
            conditions,
            output,
        });
    }
    let source = match (name.as_str(), sampling) {
        ("calls", _) => Source::Calls {
            method: method.unwrap_or(Method::Best),
            command: arguments,
        },
        (_, Some(sampling)) => Source::Stacks {
            sampling,
            frequency: frequency.unwrap_or(DEFAULT_FREQUENCY_HZ),
            command: arguments,
        },
        ("allocations", _) => Source::Recordings(single_path(&name, arguments)?),
        _ => return Err(unknown("source", &name)),
    };
    let output = output?;
    Ok(Request::Evidence { source, output })
}

fn unknown(noun: &str, name: &str) -> Problem {
    Problem::usage(format!("there is no {noun} {name:?}: see --help"))
}

fn single_path(name: &str, arguments: Vec<OsString>) -> Result<PathBuf, Problem> {
    <[OsString; 1]>::try_from(arguments)
        .map(|[argument]| PathBuf::from(argument))
        .map_err(|_| Problem::usage(format!("{name} reads exactly one file or folder: name one")))
}

fn picture_of(name: &str) -> Option<Picture> {
    match name {
        "flame-graph" => Some(Picture::FlameGraph),
        "firefox" => Some(Picture::Firefox),
        _ => None,
    }
}

fn sampling_of(name: &str) -> Option<Sampling> {
    match name {
        "profile" => Some(Sampling::Time),
        "faults" => Some(Sampling::Faults),
        "waits" => Some(Sampling::Waits),
        _ => None,
    }
}

fn read_method(parser: &mut Parser) -> Result<Method, Problem> {
    match parser.value()?.string()?.as_str() {
        "best" => Ok(Method::Best),
        "tracepoints" => Ok(Method::Tracepoints),
        "ptrace" => Ok(Method::Ptrace),
        other => Err(unknown("method", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_arguments(arguments: &[&str]) -> Result<Request, Problem> {
        read(Parser::from_iter(
            ["equipoise-evidence"].iter().chain(arguments),
        ))
    }

    #[test]
    fn options_after_the_command_belong_to_the_command() {
        let arguments = ["calls", "--output", "o", "--", "ls", "--method", "-x"];
        let Ok(Request::Evidence { source, .. }) = read_arguments(&arguments) else {
            panic!("the command line is valid");
        };
        let Source::Calls { method, command } = source else {
            panic!("the source must be calls");
        };
        assert_eq!(method, Method::Best);
        assert_eq!(command, ["ls", "--method", "-x"]);
    }

    #[test]
    fn invalid_command_lines_are_refused() {
        let arguments = ["profile", "--method", "best", "--output", "o", "--", "ls"];
        assert!(read_arguments(&arguments).is_err());
        assert!(read_arguments(&["nothing", "--output", "o"]).is_err());
        assert!(read_arguments(&["calls", "--", "ls"]).is_err());
    }
}
