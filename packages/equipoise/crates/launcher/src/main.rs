//! Runs one program at a time (a trial), and reports its time and its use of resources.
//!
//! A campaign has one launcher. The launcher is small, because the kernel never reports a lower
//! peak memory for a child than for its parent. While a trial runs, the launcher only waits.
//! Requests and reports are JSON lines. The client is the process that sends the requests.
//!
//! - `serve`: sets the launcher up, and answers one request after the other.
//! - `trial`: runs one trial, from its request to its report.
//! - `spawn`, `clone`, `settings`: start a program.
//! - `account`, `counters`, `perf`: measure the resources that a trial used.
//! - `contain`, `cgroup`: end every descendant of a trial.
//! - `output`: files that receive the output of a trial.
//! - `conversation`, `protocol`, `options`: the pipe, its JSON lines, the command line.
//! - `memory`, `signals`: the launcher's own memory and signals.
//! - `reading`: the error message for a file that cannot be read.

mod account;
mod cgroup;
mod clone;
mod contain;
mod conversation;
mod counters;
mod memory;
mod options;
mod output;
mod perf;
mod protocol;
mod reading;
mod serve;
mod settings;
mod signals;
mod spawn;
mod trial;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::serve::serve;

const EXIT_FAILURE: u8 = 2;
/// Maximum time for the removal of the scratch folder.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(12);
/// Pause between two attempts of the removal.
const REMOVAL_PAUSE: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // If this line cannot be written, the exit status still reports the failure.
            drop(writeln!(io::stderr(), "equipoise-launcher: {message}"));
            ExitCode::from(EXIT_FAILURE)
        }
    }
}

fn run() -> Result<(), String> {
    let options = Options::parse(std::env::args_os().skip(1)).map_err(|error| error.to_string())?;
    let result = serve(&options).map_err(|error| error.to_string());
    result.and(options.scratch.as_deref().map_or(Ok(()), remove_folder))
}

/// Removes a folder with its content; an absent folder is not an error. Another launcher of the
/// campaign may still be stopping a server that writes into the folder. So the removal is repeated
/// until the folder is gone or `REMOVAL_TIMEOUT` is over.
fn remove_folder(folder: &Path) -> Result<(), String> {
    let deadline = Instant::now() + REMOVAL_TIMEOUT;
    loop {
        match fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {
                return Ok(());
            }
            Err(error) if Instant::now() > deadline => {
                return Err(format!("cannot remove {}: {error}", folder.display()));
            }
            Err(_) => thread::sleep(REMOVAL_PAUSE),
        }
    }
}
