//! Starts, times and accounts for one trial at a time.
//!
//! A campaign has one launcher. It is small, because the peak memory of a child is never below that
//! of the process that started it, and it does nothing else inside the timed region. Requests and
//! reports are JSON lines.
//!
//! - `serve`: sets the launcher up, and serves one request after the other.
//! - `trial`: one trial, from its request to its report.
//! - `spawn`, `clone`, `settings`: starts a program.
//! - `account`, `counters`, `perf`: what a trial consumed.
//! - `contain`, `cgroup`: ends every descendant of a trial.
//! - `output`: files that take what a trial writes.
//! - `conversation`, `protocol`, `options`: the pipe, its JSON lines, the command line.
//! - `memory`, `signals`: the launcher's own memory and signals.

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

const UNUSABLE: u8 = 2;
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(12);
const PAUSE: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // If this line cannot be written, the exit status still reports the failure.
            drop(writeln!(io::stderr(), "equipoise-launcher: {message}"));
            ExitCode::from(UNUSABLE)
        }
    }
}

fn run() -> Result<(), String> {
    let options = Options::parse(std::env::args_os().skip(1)).map_err(|error| error.to_string())?;
    let served = serve(&options).map_err(|error| error.to_string());
    served.and(options.scratch.as_deref().map_or(Ok(()), remove))
}

/// Removes a folder with its content; an absent folder is not an error.
///
/// A server that another launcher of the same campaign is ending may still write into the folder,
/// so new files are removed again, for as long as that launcher may take.
fn remove(folder: &Path) -> Result<(), String> {
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
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
