//! Times one function of two shared libraries in turns, in one process.
//!
//! - `options`: the command line.
//! - `library`: loads a shared library apart from others, and lists its benchmarks.
//! - `running`: the file that names the library that runs.
//! - `timing`: the calls: how many take long enough, and the batches of both libraries.

mod library;
mod options;
mod running;
mod timing;

use std::env;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use equipoise_reporting::problem::Problem;

use crate::library::{Library, benchmarks_of, keep_pages_free};
use crate::options::{Options, Task};
use crate::running::Running;
use crate::timing::{Random, calibrate, time_in_turns};

fn main() -> ExitCode {
    match Options::parse(env::args_os().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            // If this line cannot be written, the exit status still reports the failure.
            drop(writeln!(io::stderr(), "{problem}"));
            ExitCode::from(problem.exit_status())
        }
    }
}

fn run(options: &Options) -> Result<(), Problem> {
    match &options.task {
        Task::List { library } => {
            let names = benchmarks_of(library)?;
            print(
                &names
                    .iter()
                    .flat_map(|name| [name, "\n"])
                    .collect::<String>(),
            )
        }
        Task::Calibrate { library, function } => {
            let library = Library::load(library)?;
            library.set_up();
            let calibration = calibrate(library.benchmark(function)?)?;
            print(&format!("{}\n", to_json(&calibration)?))
        }
        Task::Compare(comparison) => {
            let mut random = Random::new(comparison.seed);
            let running = Running::new(&comparison.running)?;
            let mut functions = Vec::new();
            for (place, file) in comparison.libraries.iter().enumerate() {
                keep_pages_free(&mut random)?;
                running.set(place);
                let library = Library::load(file)?;
                library.shift_heap(&mut random);
                library.set_up();
                functions.push(library.benchmark(&comparison.function)?);
            }
            let functions = [functions[0], functions[1]];
            let batches = time_in_turns(functions, comparison, &running, &mut random);
            fs::write(&comparison.output, to_json(&batches)?)
                .map_err(Problem::system(&comparison.output.to_string_lossy()))
        }
    }
}

fn print(text: &str) -> Result<(), Problem> {
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(Problem::system("standard output"))
}

fn to_json(value: &impl serde::Serialize) -> Result<String, Problem> {
    serde_json::to_string(value).map_err(|error| Problem::failure(error.to_string()))
}
