//! The launcher as a program; see the README beside it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use equipoise_launcher::options::Options;
use equipoise_launcher::serve::serve;

const UNUSABLE: u8 = 2;
const PATIENCE: Duration = Duration::from_secs(12);
const PAUSE: Duration = Duration::from_millis(20);

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
///
/// A server that another launcher of the same campaign is ending may still write into it, so
/// what comes back is removed again, for as long as that launcher may take.
fn removed(folder: &Path) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Err(error) = fs::remove_dir_all(folder) else {
            return Ok(());
        };
        let is_gone = error.kind() == io::ErrorKind::NotFound && !folder.exists();
        if is_gone {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("cannot remove {}: {error}", folder.display()));
        }
        thread::sleep(PAUSE);
    }
}
