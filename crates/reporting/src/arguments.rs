//! Reading options and their values.

use std::ffi::OsString;
use std::ops::RangeInclusive;

use lexopt::{Arg, Parser};

use crate::problem::Problem;

/// The options of a command, read one by one.
pub struct Options {
    parser: Parser,
    /// Name of the option that was read last.
    name: String,
}

impl Options {
    /// Begins with the word that the parser reads next.
    #[must_use]
    pub fn new(parser: Parser) -> Self {
        Self {
            parser,
            name: String::new(),
        }
    }

    /// Whether one of the words is `--help` or `-h`.
    pub fn ask_for_help(&mut self) -> bool {
        let is_help = |word: &OsString| word == "--help" || word == "-h";
        let words = self.parser.try_raw_args();
        words.is_some_and(|words| words.as_slice().iter().any(is_help))
    }

    /// Reads the name of the next option; `None` after the last option.
    ///
    /// # Errors
    /// The next word is not a long option.
    pub fn next_name(&mut self) -> Result<Option<String>, Problem> {
        match self.parser.next()? {
            None => Ok(None),
            Some(Arg::Long(name)) => {
                name.clone_into(&mut self.name);
                Ok(Some(self.name.clone()))
            }
            Some(other) => Err(other.unexpected().into()),
        }
    }

    /// Returns the problem that there is no option of the name that was read last.
    #[must_use]
    pub fn unknown(&self) -> Problem {
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
                "--{} {} is no text",
                self.name,
                value.to_string_lossy()
            ))
        })
    }

    /// Reads the value of the option, as a whole number within `range`.
    ///
    /// # Errors
    /// There is no value, or it is not such a number.
    pub fn number(&mut self, range: RangeInclusive<u64>) -> Result<u64, Problem> {
        parse_number(&self.text()?, range)
            .map_err(|message| Problem::usage(format!("--{}: {message}", self.name)))
    }

    /// Reads the value of the option, as a size within `range`.
    ///
    /// # Errors
    /// There is no value, or it is not such a number.
    pub fn size(&mut self, range: RangeInclusive<u64>) -> Result<usize, Problem> {
        self.number(range).map(to_usize)
    }

    /// Reads the value of the option: the name of one of the choices.
    ///
    /// # Errors
    /// The value is missing, or is not a choice.
    pub fn choice<Kind: Copy>(&mut self, choices: &[(&str, Kind)]) -> Result<Kind, Problem> {
        let name = self.text()?;
        let chosen = choices.iter().find(|(choice, _)| *choice == name);
        chosen.map(|&(_, kind)| kind).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            let (option, names) = (&self.name, names.join(", "));
            Problem::usage(format!("--{option}: `{name}` is none of: {names}"))
        })
    }
}

/// Converts a number of an option to a size.
///
/// # Panics
/// It does not fit an address; the ranges of options end far below that.
#[must_use]
pub fn to_usize(number: u64) -> usize {
    usize::try_from(number).expect("every range given here fits a 64-bit address space")
}

/// Parses a whole number within `range`.
///
/// # Errors
/// The message for a value that is not such a number.
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
    fn a_number_within_its_range_is_read() {
        assert_eq!(parse_number("7", 1..=7), Ok(7));
    }

    #[test]
    fn a_number_outside_its_range_is_refused_with_the_range() {
        for value in ["0", "8", "-1", "1.5", "", "many", "99999999999999999999999"] {
            let message = parse_number(value, 1..=7).expect_err(value);
            assert!(message.contains("from 1 to 7"), "{message}");
        }
    }
}
