//! Why a file cannot be read.

use std::io;

/// Returns what turns an error into the reason why a file cannot be read.
pub fn cannot_read(path: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("cannot read {path}: {error}")
}
