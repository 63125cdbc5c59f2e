//! The launcher as a program; see the README beside it.

use std::io::{self, Write};
use std::process::ExitCode;

use equipoise_launcher::options::Options;
use equipoise_launcher::serve::serve;

const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let served = Options::parse(std::env::args_os().skip(1))
        .and_then(|options| serve(&options).map_err(|error| error.to_string()));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            // If even this cannot be said, the exit status still says that it failed.
            drop(writeln!(io::stderr(), "equipoise-launcher: {words}"));
            ExitCode::from(UNUSABLE)
        }
    }
}
