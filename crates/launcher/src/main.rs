//! The launcher as a program; see the README beside it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use equipoise_launcher::options::Options;
use equipoise_launcher::serve::serve;

const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let served = Options::parse(std::env::args_os().skip(1)).and_then(|options| {
        let served = serve(&options).map_err(|error| error.to_string());
        served.and(options.scratch.as_deref().map_or(Ok(()), removed))
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            // If even this cannot be said, the exit status still says that it failed.
            drop(writeln!(io::stderr(), "equipoise-launcher: {words}"));
            ExitCode::from(UNUSABLE)
        }
    }
}

/// Removes a folder with all that is in it; one that is gone already is as good.
fn removed(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}
