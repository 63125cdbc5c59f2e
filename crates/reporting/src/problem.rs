//! Errors of a program: one line for the user and an exit status.

use std::fmt;
use std::io;

/// Exit status of a run that failed.
const RUN_FAILED: u8 = 1;
/// Exit status for a wrong command line.
const BAD_OPTIONS: u8 = 2;
/// Exit status if the machine cannot do the work: `EX_UNAVAILABLE` of sysexits.h.
const UNAVAILABLE: u8 = 69;

/// One line for the user, and the exit status of the process.
#[derive(Debug)]
pub struct Problem {
    message: String,
    exit_status: u8,
}

impl Problem {
    /// Makes a problem of the command line: exit status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_status: BAD_OPTIONS,
        }
    }

    /// Makes a problem of the work itself: exit status 1.
    pub fn failure(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_status: RUN_FAILED,
        }
    }

    /// Returns a function that turns a system error about `subject` into a problem: exit status 1.
    pub fn system(subject: &str) -> impl Fn(io::Error) -> Self + Copy + '_ {
        move |error| Self::failure(format!("{subject}: {error}"))
    }

    /// Makes a problem of the machine, which forbids the work or lacks a feature: exit status 69.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            exit_status: UNAVAILABLE,
        }
    }

    /// Whether the machine forbids the work or lacks a feature.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.exit_status == UNAVAILABLE
    }

    /// Puts the name of a part of the program before the message.
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
