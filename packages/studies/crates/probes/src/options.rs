//! The command line: which probe, with which options, for how long.

use std::time::Duration;

use equipoise_reporting::arguments::Options;
use equipoise_reporting::problem::Problem;
use equipoise_reporting::program::find;
use lexopt::{Arg, Parser};

use crate::batches::Batching;
use crate::listing;
use crate::probe::{Parameter, Placement, Probe, ProbeOptions};
use crate::probes::PROBES;

const MAX_BATCHES: u64 = 1_000_000;
const MAX_BATCH_MS: u64 = 60_000;

/// The request of the command line.
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
pub fn read(mut parser: Parser) -> Result<Command, Problem> {
    let name = match parser.next()? {
        Some(Arg::Long("list")) => return Ok(Command::Text(listing::json_lines())),
        Some(Arg::Long("help") | Arg::Short('h')) => return Ok(Command::Text(listing::help())),
        Some(Arg::Value(name)) => Some(name.to_string_lossy().into_owned()),
        Some(other) => return Err(other.unexpected().into()),
        None => None,
    };
    let probe: &Probe = find("probe", PROBES, |probe| probe.name, name.as_deref())?;
    let mut options = Options::new(parser);
    if options.ask_for_help() {
        return Ok(Command::Text(listing::help_of(probe)));
    }
    request(probe, &mut options).map_err(|problem| problem.within(probe.name))
}

fn request(probe: &'static Probe, options: &mut Options) -> Result<Command, Problem> {
    let default = |parameter: Option<Parameter>| parameter.map_or(0, |parameter| parameter.default);
    let mut request = Request {
        probe,
        options: ProbeOptions {
            placement: probe.placements[0],
            size: default(probe.size),
            count: default(probe.count),
            folder: None,
        },
        batching: Batching::default(),
    };
    let mut check = false;
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "batches" => request.batching.batches = options.number(1..=MAX_BATCHES)?,
            "batch-ms" => {
                let milliseconds = options.number(1..=MAX_BATCH_MS)?;
                request.batching.duration = Duration::from_millis(milliseconds);
            }
            "check" => check = true,
            "folder" => request.options.folder = Some(options.value()?.into()),
            "placement" => request.options.placement = placement(probe, &options.text()?)?,
            "size" => request.options.size = parameter(probe.size, options, "size")?,
            "count" => request.options.count = parameter(probe.count, options, "count")?,
            _ => return Err(options.unknown()),
        }
    }
    Ok(if check {
        Command::Check(request)
    } else {
        Command::Measure(request)
    })
}

fn placement(probe: &Probe, name: &str) -> Result<Placement, Problem> {
    let placement = probe
        .placements
        .iter()
        .find(|placement| placement.to_string() == name);
    placement.copied().ok_or_else(|| {
        let names: Vec<_> = probe.placements.iter().map(Placement::to_string).collect();
        Problem::usage(format!("--placement {name}: one of {}", names.join(", ")))
    })
}

fn parameter(
    parameter: Option<Parameter>,
    options: &mut Options,
    name: &str,
) -> Result<u64, Problem> {
    let parameter = parameter.ok_or_else(|| Problem::usage(format!("it takes no --{name}")))?;
    options.number(parameter.minimum..=parameter.maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Result<Command, Problem> {
        read(Parser::from_args(words))
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
        assert_eq!(request.batching, Batching::default());
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
    fn an_error_names_the_wrong_word() {
        for (words, named) in [
            (&[][..], "null_call"),
            (&["no_call"], "no_call"),
            (&["null_call", "--size", "5"], "it takes no --size"),
            (&["null_call", "--placement", "same_cpu"], "one of none"),
            (&["null_call", "--batches", "0"], "--batches"),
        ] {
            let message = refusal(words);
            assert!(message.contains(named), "{words:?}: {message}");
        }
    }
}
