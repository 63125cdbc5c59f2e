//! The command line: which probe, with which options, for how long.

use std::ffi::OsString;
use std::time::Duration;

use equipoise_reporting::arguments::{number, text};
use equipoise_reporting::problem::Problem;
use lexopt::{Arg, Parser};

use crate::batches::Batching;
use crate::listing;
use crate::probe::{Parameter, Placement, Probe, ProbeOptions};
use crate::probes::PROBES;

const DEFAULT_BATCHES: u64 = 11;
const DEFAULT_BATCH_MS: u64 = 10;
const MAX_BATCHES: u64 = 1_000_000;
const MAX_BATCH_MS: u64 = 60_000;

/// What the command line requests.
pub enum Command {
    /// Text for standard output; nothing is measured.
    Text(String),
    /// Find out whether the probe works here.
    Check(Request),
    /// Measure.
    Measure(Request),
}

/// A probe with its options.
pub struct Request {
    /// The probe.
    pub probe: &'static Probe,
    /// Options with which it is opened.
    pub options: ProbeOptions,
    /// Number and length of the batches.
    pub batching: Batching,
}

/// Reads the command line.
pub fn read(arguments: impl Iterator<Item = OsString>) -> Result<Command, Problem> {
    let mut parser = Parser::from_args(arguments);
    match parser.next()? {
        Some(Arg::Long("list")) => Ok(Command::Text(listing::json_lines())),
        Some(Arg::Long("help") | Arg::Short('h')) => Ok(Command::Text(listing::help())),
        Some(Arg::Value(name)) => {
            let probe = find(&name.to_string_lossy())?;
            request(probe, &mut parser).map_err(|problem| problem.within(probe.name))
        }
        Some(other) => Err(other.unexpected().into()),
        None => Err(Problem::usage(format!(
            "no probe named; one of: {}",
            names()
        ))),
    }
}

fn request(probe: &'static Probe, parser: &mut Parser) -> Result<Command, Problem> {
    let default = |parameter: Option<Parameter>| parameter.map_or(0, |parameter| parameter.default);
    let mut options = ProbeOptions {
        placement: probe.placements[0],
        size: default(probe.size),
        count: default(probe.count),
        folder: None,
    };
    let mut batches = DEFAULT_BATCHES;
    let mut batch_ms = DEFAULT_BATCH_MS;
    let mut check = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("batches") => batches = number(parser, "batches", 1..=MAX_BATCHES)?,
            Arg::Long("batch-ms") => batch_ms = number(parser, "batch-ms", 1..=MAX_BATCH_MS)?,
            Arg::Long("check") => check = true,
            Arg::Long("folder") => options.folder = Some(parser.value()?.into()),
            Arg::Long("placement") => options.placement = placement(probe, parser)?,
            Arg::Long("size") => options.size = parameter(probe.size, parser, "size")?,
            Arg::Long("count") => options.count = parameter(probe.count, parser, "count")?,
            Arg::Long("help") | Arg::Short('h') => {
                return Ok(Command::Text(listing::help_of(probe)));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let request = Request {
        probe,
        options,
        batching: Batching {
            batches,
            duration: Duration::from_millis(batch_ms),
        },
    };
    Ok(if check {
        Command::Check(request)
    } else {
        Command::Measure(request)
    })
}

fn placement(probe: &Probe, parser: &mut Parser) -> Result<Placement, Problem> {
    let name = text(parser, "placement")?;
    probe
        .placements
        .iter()
        .find(|placement| placement.name() == name)
        .copied()
        .ok_or_else(|| {
            let known: Vec<_> = probe
                .placements
                .iter()
                .map(|placement| placement.name())
                .collect();
            Problem::usage(format!("--placement {name}: one of {}", known.join(", ")))
        })
}

fn parameter(
    parameter: Option<Parameter>,
    parser: &mut Parser,
    option: &str,
) -> Result<u64, Problem> {
    let parameter = parameter.ok_or_else(|| Problem::usage(format!("it takes no --{option}")))?;
    number(parser, option, parameter.minimum..=parameter.maximum)
}

fn find(name: &str) -> Result<&'static Probe, Problem> {
    PROBES
        .iter()
        .find(|probe| probe.name == name)
        .copied()
        .ok_or_else(|| Problem::usage(format!("no probe `{name}`; one of: {}", names())))
}

fn names() -> String {
    let names: Vec<_> = PROBES.iter().map(|probe| probe.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Result<Command, Problem> {
        read(words.iter().map(OsString::from))
    }

    fn refusal(words: &[&str]) -> String {
        match command(words) {
            Err(problem) => problem.to_string(),
            Ok(_) => panic!("{words:?} was accepted"),
        }
    }

    #[test]
    fn an_option_that_is_absent_has_its_default() {
        let Ok(Command::Measure(request)) = command(&["null_call"]) else {
            panic!("a measurement");
        };
        assert_eq!(request.batching.batches, DEFAULT_BATCHES);
        assert_eq!(
            request.batching.duration,
            Duration::from_millis(DEFAULT_BATCH_MS)
        );
        assert_eq!(request.options.placement, Placement::None);
    }

    #[test]
    fn every_row_is_a_usable_command_line() {
        for probe in PROBES {
            for row in probe.rows {
                let mut words = vec![probe.name.to_owned(), "--check".to_owned()];
                words.extend(listing::options_of(row));
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                assert!(
                    matches!(command(&words), Ok(Command::Check(_))),
                    "{words:?}"
                );
            }
        }
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (words, named) in [
            (&[][..], "null_call"),
            (&["no_call"], "no_call"),
            (&["null_call", "--size", "5"], "it takes no --size"),
            (&["null_call", "--placement", "same_cpu"], "one of none"),
            (&["null_call", "--batches", "0"], "--batches"),
        ] {
            assert!(
                refusal(words).contains(named),
                "{words:?}: {}",
                refusal(words)
            );
        }
    }
}
