//! Why a file cannot be read.

use std::io;

/// Returns a function from an error to the reason why a file cannot be read.
pub fn cannot_read(path: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("cannot read {path}: {error}")
}
