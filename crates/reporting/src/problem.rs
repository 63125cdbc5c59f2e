//! What can go wrong, in one line.

use std::fmt;
use std::io;

const RUN_FAILED: u8 = 1;
const BAD_OPTIONS: u8 = 2;
/// `EX_UNAVAILABLE` of sysexits.h.
const UNAVAILABLE: u8 = 69;

/// One line for the user, and what the process exits with.
#[derive(Debug)]
pub struct Problem {
    words: String,
    exit_status: u8,
}

impl Problem {
    /// The command line cannot be used: exit status 2.
    pub fn usage(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            exit_status: BAD_OPTIONS,
        }
    }

    /// The work itself could not be done: exit status 1.
    pub fn failure(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            exit_status: RUN_FAILED,
        }
    }

    /// The system has refused something: exit status 1.
    #[must_use]
    pub fn system(thing: &str, error: &io::Error) -> Self {
        Self::failure(format!("{thing}: {error}"))
    }

    /// This machine, or what the process may do on it, does not allow the work: exit status 69.
    pub fn unavailable(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            exit_status: UNAVAILABLE,
        }
    }

    /// Whether the work is not allowed here, rather than wrongly asked for or gone wrong.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.exit_status == UNAVAILABLE
    }

    /// The same problem, naming the program's part that has it.
    #[must_use]
    pub fn within(self, part: &str) -> Self {
        Self {
            words: format!("{part}: {}", self.words),
            ..self
        }
    }

    /// What the process exits with.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        self.exit_status
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words)
    }
}

impl From<lexopt::Error> for Problem {
    fn from(error: lexopt::Error) -> Self {
        Self::usage(error.to_string())
    }
}
