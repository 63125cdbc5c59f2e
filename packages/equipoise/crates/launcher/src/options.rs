//! The command line of the launcher.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

use equipoise_kernel::clock::SECOND_NS;
use equipoise_reporting::arguments;
use equipoise_reporting::problem::Problem;
use lexopt::Parser;

use crate::cgroup::{IDENTITY_DIGITS, is_identity};
use crate::counters::{self, Kind};

/// Value of `--containment`: how the launcher finds all processes of a trial, to end them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainmentChoice {
    /// A cgroup, if the launcher can create one that does not change how a trial runs. Else a
    /// process group, with the reason in each report.
    Auto,
    /// A cgroup, if the launcher can create one; else a process group, with the reason.
    Cgroup,
    ProcessGroup,
}

const CONTAINMENTS: [(&str, ContainmentChoice); 3] = [
    ("auto", ContainmentChoice::Auto),
    ("cgroup", ContainmentChoice::Cgroup),
    ("process-group", ContainmentChoice::ProcessGroup),
];

/// Values of the options of the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub containment: ContainmentChoice,
    /// Descriptor for the standard output of the trials that request `inherit`.
    pub inherit_stdout: Option<i32>,
    /// Nanoseconds for which the launcher keeps its CPU busy before each start.
    pub awake_ns: u64,
    pub counters: Vec<&'static Kind>,
    /// Folder that the launcher removes when it ends, even if Equipoise was killed.
    pub scratch: Option<PathBuf>,
    /// Identity of the campaign (hexadecimal digits), a part of the names of its cgroups.
    pub identity: Option<String>,
}

/// Default of `--awake-us`, in nanoseconds; the README has the measurements.
const DEFAULT_AWAKE_NS: u64 = 50_000;

impl Default for Options {
    fn default() -> Self {
        Self {
            containment: ContainmentChoice::Auto,
            inherit_stdout: None,
            awake_ns: DEFAULT_AWAKE_NS,
            counters: Vec::new(),
            scratch: None,
            identity: None,
        }
    }
}

impl Options {
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Problem> {
        const MAX_DESCRIPTOR: u64 = i32::MAX as u64;
        let mut options = Self::default();
        let mut arguments = arguments::Options::new(Parser::from_args(arguments));
        while let Some(name) = arguments.next_name()? {
            match name.as_str() {
                "containment" => options.containment = arguments.choice(&CONTAINMENTS)?,
                "inherit-stdout" => {
                    let descriptor = arguments.number(0..=MAX_DESCRIPTOR)?;
                    options.inherit_stdout = RawFd::try_from(descriptor).ok();
                }
                "awake-us" => {
                    let microseconds = arguments.number(0..=u64::MAX)?;
                    options.awake_ns = microseconds.saturating_mul(1000).min(SECOND_NS);
                }
                "counters" => options.counters = parse_counters(&arguments.text()?)?,
                "scratch" => options.scratch = Some(arguments.value()?.into()),
                "identity" => options.identity = Some(parse_identity(arguments.text()?)?),
                _ => return Err(arguments.unknown_option()),
            }
        }
        Ok(options)
    }
}

fn parse_identity(value: String) -> Result<String, Problem> {
    if is_identity(&value) {
        return Ok(value);
    }
    Err(Problem::usage(format!(
        "--identity takes {IDENTITY_DIGITS} hexadecimal digits, not {value}"
    )))
}

fn parse_counters(value: &str) -> Result<Vec<&'static Kind>, Problem> {
    let mut kinds = Vec::new();
    for name in value.split(',') {
        let kind = counters::find(name).map_err(Problem::usage)?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(arguments.iter().map(OsString::from)).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_parsed() {
        let options = parse(&["--containment", "process-group", "--inherit-stdout", "7"]);
        assert_eq!(
            options,
            Ok(Options {
                containment: ContainmentChoice::ProcessGroup,
                inherit_stdout: Some(7),
                ..Options::default()
            })
        );
    }

    #[test]
    fn a_counter_that_is_named_twice_is_opened_once() {
        let options = parse(&["--counters", "cycles,task_clock,cycles"]).expect("right");
        let names: Vec<&str> = options.counters.iter().map(|kind| kind.name).collect();
        assert_eq!(names, ["cycles", "task_clock"]);
        assert!(
            parse(&["--counters", "luck"]).is_err_and(|message| message.contains("luck; there"))
        );
    }

    #[test]
    fn an_error_names_the_wrong_value_or_option() {
        assert!(parse(&["--containment", "jail"]).is_err_and(|message| message.contains("jail")));
        assert!(
            parse(&["--inherit-stdout"]).is_err_and(|message| message.contains("missing argument"))
        );
        assert!(parse(&["--identity", "mine"]).is_err_and(|message| message.contains("mine")));
        assert!(parse(&["--fast", "1"]).is_err_and(|message| message.contains("--fast")));
    }
}
