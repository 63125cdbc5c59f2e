//! The program `equipoise-evidence`: observes one run of a command, and draws pictures of stacks.

mod allocations;
mod calls;
mod command;
mod maps;
mod options;
mod perf;
mod pictures;
mod profile;
mod regular_file;
mod signals;
mod stacks;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use lexopt::Parser;
use serde::Serialize;

use equipoise_reporting::problem::Problem;
use equipoise_reporting::program::finish;

use crate::options::{Picture, Request, Source, USAGE};

fn main() -> ExitCode {
    finish(
        "equipoise-evidence",
        options::read(Parser::from_env()).and_then(run),
    )
}

/// Carries out a request, and returns the text for standard output.
fn run(request: Request) -> Result<String, Problem> {
    match request {
        Request::Help => return Ok(USAGE.to_owned()),
        Request::Evidence { source, output } => match source {
            Source::Calls { method, command } => save(&output, &calls::observe(method, command)?),
            Source::Stacks {
                sampling,
                frequency,
                command,
            } => save(&output, &profile::observe(sampling, frequency, command)?),
            Source::Recordings(folder) => save(&output, &allocations::stacks(&folder)?),
        },
        Request::Picture {
            picture,
            conditions,
            output,
        } => {
            let conditions = pictures::read(&conditions)?;
            let name = output.display().to_string();
            let to_problem = Problem::system(&name);
            let mut file = File::create(&output)
                .map(BufWriter::new)
                .map_err(to_problem)?;
            match picture {
                Picture::FlameGraph => pictures::flame_graph::draw(&conditions, &mut file)?,
                Picture::Firefox => pictures::firefox::write(&conditions, &mut file)?,
            }
            file.flush().map_err(to_problem)
        }
    }
    .map(|()| String::new())
}

fn save(file: &Path, report: &impl Serialize) -> Result<(), Problem> {
    let text = serde_json::to_vec(report)
        .map_err(|error| Problem::failure(format!("{}: {error}", file.display())))?;
    fs::write(file, text).map_err(Problem::system(&file.display().to_string()))
}
