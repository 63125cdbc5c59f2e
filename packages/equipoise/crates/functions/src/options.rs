//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use equipoise_reporting::arguments;
use equipoise_reporting::problem::Problem;
use lexopt::Parser;

/// Maximum number of rounds of a process.
const MAX_ROUNDS: u64 = 1_000_000;

/// What the program does.
pub enum Task {
    /// Prints the names of the benchmarks of a library, one a line.
    List { library: PathBuf },
    /// Runs one benchmark alone, and prints how many calls make a batch.
    Calibrate { library: PathBuf, function: String },
    /// Times a benchmark of two libraries in turns.
    Compare(Comparison),
}

/// A benchmark of two libraries.
pub struct Comparison {
    /// The libraries, in the order in which they are loaded.
    pub libraries: [PathBuf; 2],
    pub function: String,
    /// Number of calls in a batch of each library.
    pub iterations: [u64; 2],
    pub rounds: usize,
    /// Seed of everything that is random in this process.
    pub seed: u64,
    /// File for the times.
    pub output: PathBuf,
    /// File that has the place of the library that runs.
    pub running: PathBuf,
}

/// The options of the command line.
pub struct Options {
    pub task: Task,
}

impl Options {
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Problem> {
        let mut libraries: Vec<PathBuf> = Vec::new();
        let mut iterations = Vec::new();
        let (mut lists, mut function, mut rounds, mut seed) = (false, None, 1, 0);
        let (mut output, mut running) = (None, None);
        let mut arguments = arguments::Options::new(Parser::from_args(arguments));
        while let Some(name) = arguments.next_name()? {
            match name.as_str() {
                "list" => lists = true,
                "library" => libraries.push(arguments.value()?.into()),
                "function" => function = Some(arguments.text()?),
                "iterations" => iterations.push(arguments.number(1..=u64::MAX)?),
                "rounds" => rounds = arguments.size(1..=MAX_ROUNDS)?,
                "seed" => seed = arguments.number(0..=u64::MAX)?,
                "output" => output = Some(arguments.value()?.into()),
                "running" => running = Some(arguments.value()?.into()),
                _ => return Err(arguments.unknown_option()),
            }
        }
        let task = if lists {
            let [library] = exactly(libraries, "--list needs one --library")?;
            Task::List { library }
        } else {
            let function = required(function, "--function")?;
            if libraries.len() < 2 {
                let [library] = exactly(libraries, "name a library with --library")?;
                Task::Calibrate { library, function }
            } else {
                Task::Compare(Comparison {
                    libraries: exactly(libraries, "at most two libraries are compared")?,
                    function,
                    iterations: exactly(iterations, "two libraries need two --iterations")?,
                    rounds,
                    seed,
                    output: required(output, "--output")?,
                    running: required(running, "--running")?,
                })
            }
        };
        Ok(Self { task })
    }
}

fn exactly<T, const N: usize>(values: Vec<T>, message: &str) -> Result<[T; N], Problem> {
    <[T; N]>::try_from(values).map_err(|_| Problem::usage(message))
}

fn required<T>(value: Option<T>, option: &str) -> Result<T, Problem> {
    value.ok_or_else(|| Problem::usage(format!("{option} is missing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, Problem> {
        Options::parse(line.split_whitespace().map(OsString::from)).map(|options| options.task)
    }

    #[test]
    fn two_libraries_are_compared_in_their_order() {
        let line = "--library a --library b --function sum --iterations 2 --iterations 3 \
                    --rounds 4 --seed 5 --output o --running r";
        let Ok(Task::Compare(comparison)) = parsed(line) else {
            panic!("two libraries are a comparison");
        };
        assert_eq!(
            comparison.libraries,
            [PathBuf::from("a"), PathBuf::from("b")]
        );
        assert_eq!(comparison.iterations, [2, 3]);
    }

    #[test]
    fn an_incomplete_command_line_is_refused() {
        for line in [
            "--list",
            "--library a",
            "--function sum",
            "--library a --library b --function sum",
            "--library a --function sum --iterations 0",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
