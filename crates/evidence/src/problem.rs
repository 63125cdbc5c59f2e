//! What can go wrong, in one line.

use std::fmt;
use std::io;

/// One line for the user, and what the process exits with.
#[derive(Debug)]
pub struct Problem {
    words: String,
    /// 2 for a command line that cannot be used, 1 for an observation that failed.
    pub exit_status: u8,
}

impl Problem {
    /// The command line cannot be used.
    pub fn usage(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            exit_status: 2,
        }
    }

    /// The observation could not be made.
    pub fn failure(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            exit_status: 1,
        }
    }

    /// Names what the system refused.
    pub fn system(thing: &str, error: &io::Error) -> Self {
        Self::failure(format!("{thing}: {error}"))
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
