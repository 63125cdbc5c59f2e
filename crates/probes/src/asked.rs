//! The command line: which probe, with what, for how long.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use equipoise_reporting::arguments::{number, text};
use equipoise_reporting::problem::Problem;
use lexopt::{Arg, Parser};

use crate::batches::Batching;
use crate::listing;
use crate::probe::{Parameter, Placement, Probe};
use crate::probes::PROBES;

const DEFAULT_BATCHES: u64 = 11;
const DEFAULT_BATCH_MS: u64 = 10;
const MOST_BATCHES: u64 = 1_000_000;
const MOST_BATCH_MS: u64 = 60_000;

/// What the command line wants.
pub enum Wanted {
    /// Text for standard output; nothing is measured.
    Text(String),
    /// Whether the probe works here.
    Check(Request),
    /// A measurement.
    Measure(Request),
}

/// A probe with all that was asked of it.
pub struct Request {
    /// Which one.
    pub probe: &'static Probe,
    /// With what.
    pub asked: Asked,
    /// For how long.
    pub batching: Batching,
}

/// With what a probe is opened.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Where its processes or threads are held.
    pub placement: Placement,
    /// Bytes, or 0 for a probe that takes none.
    pub size: u64,
    /// How many, or 0 for a probe that counts nothing.
    pub count: u64,
    /// Where files are made, if that was said.
    pub folder: Option<PathBuf>,
}

/// Reads the command line.
///
/// # Errors
/// If it cannot be used.
pub fn read(arguments: impl Iterator<Item = OsString>) -> Result<Wanted, Problem> {
    let mut parser = Parser::from_args(arguments);
    match parser.next()? {
        Some(Arg::Long("list")) => Ok(Wanted::Text(listing::json_lines())),
        Some(Arg::Long("help") | Arg::Short('h')) => Ok(Wanted::Text(listing::help())),
        Some(Arg::Value(name)) => {
            let probe = find(&name.to_string_lossy())?;
            options(probe, &mut parser).map_err(|problem| problem.within(probe.name))
        }
        Some(other) => Err(other.unexpected().into()),
        None => Err(Problem::usage(format!(
            "no probe named; one of: {}",
            names()
        ))),
    }
}

fn options(probe: &'static Probe, parser: &mut Parser) -> Result<Wanted, Problem> {
    let default = |parameter: Option<Parameter>| parameter.map_or(0, |given| given.default);
    let mut asked = Asked {
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
            Arg::Long("batches") => batches = number(parser, "batches", 1..=MOST_BATCHES)?,
            Arg::Long("batch-ms") => batch_ms = number(parser, "batch-ms", 1..=MOST_BATCH_MS)?,
            Arg::Long("check") => check = true,
            Arg::Long("folder") => asked.folder = Some(parser.value()?.into()),
            Arg::Long("placement") => asked.placement = placement(probe, parser)?,
            Arg::Long("size") => asked.size = parameter(probe.size, parser, "size")?,
            Arg::Long("count") => asked.count = parameter(probe.count, parser, "count")?,
            Arg::Long("help") | Arg::Short('h') => {
                return Ok(Wanted::Text(listing::help_of(probe)));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let request = Request {
        probe,
        asked,
        batching: Batching {
            batches,
            lasting: Duration::from_millis(batch_ms),
        },
    };
    Ok(if check {
        Wanted::Check(request)
    } else {
        Wanted::Measure(request)
    })
}

fn placement(probe: &Probe, parser: &mut Parser) -> Result<Placement, Problem> {
    let word = text(parser, "placement")?;
    probe
        .placements
        .iter()
        .find(|placement| placement.word() == word)
        .copied()
        .ok_or_else(|| {
            let known: Vec<_> = probe.placements.iter().map(|one| one.word()).collect();
            Problem::usage(format!("--placement {word}: one of {}", known.join(", ")))
        })
}

fn parameter(taken: Option<Parameter>, parser: &mut Parser, option: &str) -> Result<u64, Problem> {
    let parameter = taken.ok_or_else(|| Problem::usage(format!("it takes no --{option}")))?;
    number(parser, option, parameter.least..=parameter.most)
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

    fn wanted(words: &[&str]) -> Result<Wanted, Problem> {
        read(words.iter().map(OsString::from))
    }

    fn refusal(words: &[&str]) -> String {
        match wanted(words) {
            Err(problem) => problem.to_string(),
            Ok(_) => panic!("{words:?} was accepted"),
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let Ok(Wanted::Measure(request)) = wanted(&["null_call"]) else {
            panic!("a measurement");
        };
        assert_eq!(request.batching.batches, DEFAULT_BATCHES);
        assert_eq!(
            request.batching.lasting,
            Duration::from_millis(DEFAULT_BATCH_MS)
        );
        assert_eq!(request.asked.placement, Placement::None);
    }

    #[test]
    fn every_row_can_be_asked_for() {
        for probe in PROBES {
            for row in probe.rows {
                let mut words = vec![probe.name.to_owned(), "--check".to_owned()];
                words.extend(listing::options_of(row));
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                assert!(matches!(wanted(&words), Ok(Wanted::Check(_))), "{words:?}");
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
