//! Problems, each in one line with an exit status.

use std::fmt;
use std::io;

const RUN_FAILED: u8 = 1;
const BAD_OPTIONS: u8 = 2;
/// `EX_UNAVAILABLE` of sysexits.h.
const UNAVAILABLE: u8 = 69;

/// One line for the user, and the exit status of the process.
#[derive(Debug)]
pub struct Problem {
    message: String,
    exit_status: u8,
}

impl Problem {
    /// The command line cannot be used: exit status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_status: BAD_OPTIONS,
        }
    }

    /// The work could not be done: exit status 1.
    pub fn failure(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_status: RUN_FAILED,
        }
    }

    /// Turns an error of the system about a thing into a problem with exit status 1.
    pub fn system(thing: &str) -> impl Fn(io::Error) -> Self + Copy + '_ {
        move |error| Self::failure(format!("{thing}: {error}"))
    }

    /// This machine does not allow the work, or lacks what it needs: exit status 69.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_status: UNAVAILABLE,
        }
    }

    /// Whether this machine does not allow the work.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.exit_status == UNAVAILABLE
    }

    /// Names the part of the program that has the problem.
    #[must_use]
    pub fn within(self, part: &str) -> Self {
        Self {
            message: format!("{part}: {}", self.message),
            ..self
        }
    }

    /// Returns the exit status of the process.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        self.exit_status
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<lexopt::Error> for Problem {
    fn from(error: lexopt::Error) -> Self {
        Self::usage(error.to_string())
    }
}
