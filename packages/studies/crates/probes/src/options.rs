//! Parses the command line: which probe to run, with which options, for how long. A probe measures
//! one primitive of the operating system, such as fork; a row of its table has certain options.

use std::time::Duration;

use equipoise_reporting::arguments::Options;
use equipoise_reporting::problem::Problem;
use equipoise_reporting::program::find_command;
use lexopt::{Arg, Parser};

use crate::batches::Batching;
use crate::listing;
use crate::probe::{Parameter, Placement, Probe, ProbeOptions};
use crate::probes::PROBES;

const MAX_BATCHES: u64 = 1_000_000;
const MAX_BATCH_MS: u64 = 60_000;

/// What the command line requests.
pub enum Command {
    /// Print a text, and measure nothing.
    Text(String),
    /// Check whether the probe works here.
    Check(Request),
    Measure(Request),
}

/// A probe with its options.
pub struct Request {
    pub probe: &'static Probe,
    pub options: ProbeOptions,
    pub batching: Batching,
}

pub fn parse(mut parser: Parser) -> Result<Command, Problem> {
    let name = match parser.next()? {
        Some(Arg::Long("list")) => return Ok(Command::Text(listing::json_lines())),
        Some(Arg::Long("help") | Arg::Short('h')) => return Ok(Command::Text(listing::help())),
        Some(Arg::Value(name)) => Some(name.to_string_lossy().into_owned()),
        Some(other) => return Err(other.unexpected().into()),
        None => None,
    };
    let probe: &Probe = find_command("probe", PROBES, |probe| probe.name, name.as_deref())?;
    let mut options = Options::new(parser);
    if options.asks_for_help() {
        return Ok(Command::Text(listing::help_of(probe)));
    }
    parse_request(probe, &mut options).map_err(|problem| problem.within(probe.name))
}

fn parse_request(probe: &'static Probe, options: &mut Options) -> Result<Command, Problem> {
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
    let mut is_check = false;
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "batches" => request.batching.batches = options.number(1..=MAX_BATCHES)?,
            "batch-ms" => {
                let milliseconds = options.number(1..=MAX_BATCH_MS)?;
                request.batching.duration = Duration::from_millis(milliseconds);
            }
            "check" => is_check = true,
            "folder" => request.options.folder = Some(options.value()?.into()),
            "placement" => request.options.placement = parse_placement(probe, &options.text()?)?,
            "size" => request.options.size = parse_parameter(probe.size, options, "size")?,
            "count" => request.options.count = parse_parameter(probe.count, options, "count")?,
            _ => return Err(options.unknown_option()),
        }
    }
    Ok(if is_check {
        Command::Check(request)
    } else {
        Command::Measure(request)
    })
}

fn parse_placement(probe: &Probe, name: &str) -> Result<Placement, Problem> {
    let placement = probe
        .placements
        .iter()
        .find(|placement| placement.to_string() == name);
    placement.copied().ok_or_else(|| {
        let names: Vec<_> = probe.placements.iter().map(Placement::to_string).collect();
        Problem::usage(format!(
            "--placement {name}: give one of {}",
            names.join(", ")
        ))
    })
}

fn parse_parameter(
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

    fn parse_arguments(arguments: &[&str]) -> Result<Command, Problem> {
        parse(Parser::from_args(arguments))
    }

    fn error_message(arguments: &[&str]) -> String {
        match parse_arguments(arguments) {
            Err(problem) => problem.to_string(),
            Ok(_) => panic!("{arguments:?} was accepted"),
        }
    }

    #[test]
    fn absent_options_have_their_defaults() {
        let Ok(Command::Measure(request)) = parse_arguments(&["null_call"]) else {
            panic!("a measurement");
        };
        assert_eq!(request.batching, Batching::default());
        assert_eq!(request.options.placement, Placement::None);
    }

    #[test]
    fn every_row_is_a_usable_command_line() {
        for probe in PROBES {
            for row in probe.rows {
                let mut arguments = vec![probe.name.to_owned(), "--check".to_owned()];
                arguments.extend(listing::options_of(row));
                let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
                let command = parse_arguments(&arguments);
                assert!(matches!(command, Ok(Command::Check(_))), "{arguments:?}");
            }
        }
    }

    #[test]
    fn an_error_names_the_wrong_argument() {
        for (arguments, expected) in [
            (&[][..], "null_call"),
            (&["no_call"], "no_call"),
            (&["null_call", "--size", "5"], "it takes no --size"),
            (&["null_call", "--placement", "same_cpu"], "one of none"),
            (&["null_call", "--batches", "0"], "--batches"),
        ] {
            let message = error_message(arguments);
            assert!(message.contains(expected), "{arguments:?}: {message}");
        }
    }
}
