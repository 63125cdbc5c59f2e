//! The launcher's own command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cgroup::{IDENTITY_DIGITS, is_identity};
use crate::clock::SECOND_NS;
use crate::counters::{self, Kind};

/// How trials are to be contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainmentChoice {
    /// A cgroup, if one can be made that changes nothing else for a trial; else a process
    /// group, with the reason in each report.
    Auto,
    /// A cgroup, if one can be made; else a process group, with the reason in each report.
    Cgroup,
    /// A process group.
    ProcessGroup,
}

/// The launcher's own command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How trials are to be contained.
    pub containment: ContainmentChoice,
    /// The descriptor that is standard output for trials that inherit it.
    pub inherit_stdout: Option<i32>,
    /// How long the CPU is kept awake before each start.
    pub awake_ns: u64,
    /// What is counted in each trial.
    pub counters: Vec<&'static Kind>,
    /// A folder to remove at the end: the launcher outlives a tool that is killed.
    pub scratch: Option<PathBuf>,
    /// Identity of the campaign, which is part of the name of its cgroups.
    pub identity: Option<String>,
}

/// How long the CPU is kept awake before each start, by default; measured, see the README.
pub const AWAKE_NS: u64 = 50_000;

impl Options {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// One line that says what is wrong and what would be right.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut options = Self {
            containment: ContainmentChoice::Auto,
            inherit_stdout: None,
            awake_ns: AWAKE_NS,
            counters: Vec::new(),
            scratch: None,
            identity: None,
        };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let name = name.to_string_lossy().into_owned();
            let raw = arguments
                .next()
                .ok_or_else(|| format!("{name} needs a value"))?;
            let value = raw.to_string_lossy().into_owned();
            match name.as_str() {
                "--containment" => options.containment = containment(&value)?,
                "--inherit-stdout" => options.inherit_stdout = Some(number(&name, &value)?),
                "--awake-us" => {
                    let microseconds: u64 = number(&name, &value)?;
                    options.awake_ns = microseconds.saturating_mul(1000).min(SECOND_NS);
                }
                "--counters" => options.counters = kinds(&value)?,
                "--scratch" => options.scratch = Some(PathBuf::from(raw)),
                "--identity" => options.identity = Some(identity(value)?),
                _ => {
                    return Err(format!(
                        "unknown option {name}; there are --containment, --inherit-stdout, \
                         --awake-us, --counters, --scratch and --identity"
                    ));
                }
            }
        }
        Ok(options)
    }
}

fn containment(value: &str) -> Result<ContainmentChoice, String> {
    match value {
        "auto" => Ok(ContainmentChoice::Auto),
        "cgroup" => Ok(ContainmentChoice::Cgroup),
        "process-group" => Ok(ContainmentChoice::ProcessGroup),
        _ => Err(format!(
            "--containment is auto, cgroup or process-group, not {value}"
        )),
    }
}

fn identity(value: String) -> Result<String, String> {
    if is_identity(&value) {
        return Ok(value);
    }
    Err(format!(
        "--identity takes {IDENTITY_DIGITS} hexadecimal digits, not {value}"
    ))
}

fn kinds(value: &str) -> Result<Vec<&'static Kind>, String> {
    let mut kinds = Vec::new();
    for name in value.split(',') {
        let kind = counters::find(name)?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{name} takes a number, not {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn options_are_read() {
        let options = parse(&["--containment", "process-group", "--inherit-stdout", "7"]);
        assert_eq!(
            options,
            Ok(Options {
                containment: ContainmentChoice::ProcessGroup,
                inherit_stdout: Some(7),
                awake_ns: AWAKE_NS,
                counters: Vec::new(),
                scratch: None,
                identity: None,
            })
        );
    }

    #[test]
    fn each_counter_that_is_asked_for_is_counted_once() {
        let options = parse(&["--counters", "cycles,task_clock,cycles"]).expect("right");
        let names: Vec<&str> = options.counters.iter().map(|kind| kind.name).collect();
        assert_eq!(names, ["cycles", "task_clock"]);
        assert!(parse(&["--counters", "luck"]).is_err_and(|words| words.contains("luck; there")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(parse(&["--containment", "jail"]).is_err_and(|words| words.contains("jail")));
        assert!(parse(&["--inherit-stdout"]).is_err_and(|words| words.contains("needs a value")));
        assert!(parse(&["--identity", "mine"]).is_err_and(|words| words.contains("mine")));
        assert!(parse(&["--fast", "1"]).is_err_and(|words| words.contains("--fast")));
    }
}
