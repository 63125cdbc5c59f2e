//! The error message for a file that cannot be read.

use std::io;

/// Returns a function that turns an I/O error into the message that a file cannot be read.
pub fn cannot_read(path: &str) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("cannot read {path}: {error}")
}
