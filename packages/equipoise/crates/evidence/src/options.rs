//! The command line.

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
libequipoise_recorder.so has recorded in FOLDER. The last draws the stacks of two conditions, which
the file CONDITIONS holds, as SVG or as a profile for profiler.firefox.com. Exits with 0 if it could observe, however the
command ended; with 1 if it could not, with 2 if it cannot be used like that.
";

/// The request of the command line.
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

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    FlameGraph,
    Firefox,
}

/// A source of evidence.
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
    Recordings(PathBuf),
}

/// Samples per second: not a multiple of other regular rates.
const FREQUENCY: u64 = 999;

/// Reads the command line.
pub fn read(mut parser: Parser) -> Result<Request, Problem> {
    let name = match parser.next()? {
        Some(Arg::Value(name)) => name.string()?,
        Some(Arg::Long("help") | Arg::Short('h')) => return Ok(Request::Help),
        _ => return Err(Problem::usage(USAGE)),
    };
    let mut method = None;
    let mut frequency = None;
    let mut output = None;
    let mut words = Vec::new();
    let sampling = sampled(&name);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("method") if name == "calls" => method = Some(read_method(&mut parser)?),
            Arg::Long("frequency") if sampling.is_some() => {
                frequency = Some(parser.value()?.parse()?);
            }
            Arg::Long("output") => output = Some(PathBuf::from(parser.value()?)),
            Arg::Value(word) => {
                words.push(word);
                words.extend(parser.raw_args()?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let output = output.ok_or_else(|| Problem::usage("no --output FILE"));
    if let Some(picture) = drawn(&name) {
        let conditions = only_one(&name, words)?;
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
            command: words,
        },
        (_, Some(sampling)) => Source::Stacks {
            sampling,
            frequency: frequency.unwrap_or(FREQUENCY),
            command: words,
        },
        ("allocations", _) => Source::Recordings(only_one(&name, words)?),
        _ => return Err(Problem::usage(format!("no source {name:?}"))),
    };
    let output = output?;
    Ok(Request::Evidence { source, output })
}

fn only_one(name: &str, words: Vec<OsString>) -> Result<PathBuf, Problem> {
    <[OsString; 1]>::try_from(words)
        .map(|[word]| PathBuf::from(word))
        .map_err(|_| Problem::usage(format!("{name} wants one file or folder to read")))
}

fn drawn(name: &str) -> Option<Picture> {
    match name {
        "flame-graph" => Some(Picture::FlameGraph),
        "firefox" => Some(Picture::Firefox),
        _ => None,
    }
}

fn sampled(name: &str) -> Option<Sampling> {
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
        other => Err(Problem::usage(format!("no method {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_words(words: &[&str]) -> Result<Request, Problem> {
        read(Parser::from_iter(
            ["equipoise-evidence"].iter().chain(words),
        ))
    }

    #[test]
    fn what_belongs_to_the_command_is_left_to_it() {
        let words = ["calls", "--output", "o", "--", "ls", "--method", "-x"];
        let Ok(Request::Evidence { source, .. }) = read_words(&words) else {
            panic!("it can be used");
        };
        let Source::Calls { method, command } = source else {
            panic!("calls were asked for");
        };
        assert_eq!(method, Method::Best);
        assert_eq!(command, ["ls", "--method", "-x"]);
    }

    #[test]
    fn an_option_of_another_source_is_refused() {
        let words = ["profile", "--method", "best", "--output", "o", "--", "ls"];
        assert!(read_words(&words).is_err());
        assert!(read_words(&["nothing", "--output", "o"]).is_err());
        assert!(read_words(&["calls", "--", "ls"]).is_err());
    }
}
