//! When memory runs out, the trial goes first.

use std::fs;

const PATH: &str = "/proc/self/oom_score_adj";

/// Makes the launcher, and with it each trial, the kernel's first choice when memory runs
/// out. Among them the largest goes first: the trial, never the launcher, and neither the
/// tool that drives it.
///
/// # Errors
/// In words, if the kernel does not let it.
pub fn offer_first() -> Result<(), String> {
    const FIRST: &str = "1000";
    fs::write(PATH, FIRST).map_err(|error| format!("cannot write {PATH}: {error}"))
}
