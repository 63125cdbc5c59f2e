//! Reads the options of a command line and their values.

use std::ffi::OsString;
use std::ops::RangeInclusive;

use lexopt::{Arg, Parser};

use crate::problem::Problem;

/// The options of a command, which are read one after another.
pub struct Options {
    parser: Parser,
    /// Name of the latest option.
    name: String,
}

impl Options {
    /// Starts with the argument that the parser reads next.
    #[must_use]
    pub fn new(parser: Parser) -> Self {
        Self {
            parser,
            name: String::new(),
        }
    }

    /// Whether one of the remaining arguments is `--help` or `-h`.
    pub fn asks_for_help(&mut self) -> bool {
        let is_help = |argument: &OsString| argument == "--help" || argument == "-h";
        let arguments = self.parser.try_raw_args();
        arguments.is_some_and(|arguments| arguments.as_slice().iter().any(is_help))
    }

    /// Reads the name of the next option; `None` after the last option.
    ///
    /// # Errors
    /// The next argument is not a long option.
    pub fn next_name(&mut self) -> Result<Option<String>, Problem> {
        match self.parser.next()? {
            None => Ok(None),
            Some(Arg::Long(name)) => {
                name.clone_into(&mut self.name);
                Ok(Some(self.name.clone()))
            }
            Some(argument) => Err(argument.unexpected().into()),
        }
    }

    /// Returns the problem that the command has no option with the latest name.
    #[must_use]
    pub fn unknown_option(&self) -> Problem {
        Arg::Long(&self.name).unexpected().into()
    }

    /// Reads the value of the option.
    ///
    /// # Errors
    /// There is no value.
    pub fn value(&mut self) -> Result<OsString, Problem> {
        Ok(self.parser.value()?)
    }

    /// Reads the value of the option, as text.
    ///
    /// # Errors
    /// There is no value, or it is not UTF-8.
    pub fn text(&mut self) -> Result<String, Problem> {
        self.value()?.into_string().map_err(|value| {
            Problem::usage(format!(
                "--{}: `{}` is not valid UTF-8 text",
                self.name,
                value.to_string_lossy()
            ))
        })
    }

    /// Reads the value of the option, as a whole number within `range`.
    ///
    /// # Errors
    /// There is no value, or it is not a whole number within `range`.
    pub fn number(&mut self, range: RangeInclusive<u64>) -> Result<u64, Problem> {
        parse_number(&self.text()?, range)
            .map_err(|message| Problem::usage(format!("--{}: {message}", self.name)))
    }

    /// Reads the value of the option, as a number of items or bytes within `range`.
    ///
    /// # Errors
    /// There is no value, or it is not a whole number within `range`.
    pub fn size(&mut self, range: RangeInclusive<u64>) -> Result<usize, Problem> {
        self.number(range).map(to_usize)
    }

    /// Reads the value of the option, which is the name of a choice; returns the choice.
    ///
    /// # Errors
    /// There is no value, or it is not the name of a choice.
    pub fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, Problem> {
        let name = self.text()?;
        let choice = choices.iter().find(|(known, _)| *known == name);
        choice.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            let (option, names) = (&self.name, names.join(", "));
            Problem::usage(format!("--{option}: `{name}` is not one of: {names}"))
        })
    }
}

/// Converts the value of an option to `usize`.
///
/// # Panics
/// The number does not fit an address. The ranges of all options end far below.
#[must_use]
pub fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("every range given here fits a 64-bit address space")
}

/// Parses a whole number within `range`.
///
/// # Errors
/// A message, if the value is not a whole number within `range`.
pub fn parse_number(value: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (minimum, maximum) = range.into_inner();
        format!("`{value}` is not a whole number from {minimum} to {maximum}")
    })
}

#[cfg(test)]
mod tests {
    use super::parse_number;

    #[test]
    fn a_number_within_the_range_is_read() {
        assert_eq!(parse_number("7", 1..=7), Ok(7));
    }

    #[test]
    fn a_number_outside_the_range_is_refused_with_the_range() {
        for value in ["0", "8", "-1", "1.5", "", "many", "99999999999999999999999"] {
            let message = parse_number(value, 1..=7).expect_err(value);
            assert!(message.contains("from 1 to 7"), "{message}");
        }
    }
}
