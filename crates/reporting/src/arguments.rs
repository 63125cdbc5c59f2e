//! Reading the values of options.

use std::ops::RangeInclusive;

use lexopt::Parser;

use crate::problem::Problem;

/// Returns the value of the current option, as text.
///
/// # Errors
/// There is no value, or it is not UTF-8.
pub fn text(parser: &mut Parser, option: &str) -> Result<String, Problem> {
    parser.value()?.into_string().map_err(|value| {
        Problem::usage(format!("--{option} {} is no text", value.to_string_lossy()))
    })
}

/// Returns the value of the current option, as a whole number within `range`.
///
/// # Errors
/// There is no value, or it is not such a number.
pub fn number(
    parser: &mut Parser,
    option: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, Problem> {
    let value = text(parser, option)?;
    parse_number(&value, range).map_err(|message| Problem::usage(format!("--{option}: {message}")))
}

/// Returns the value of the current option, which is the name of one of the choices.
///
/// # Errors
/// There is no value, or no choice of this name.
pub fn choice<Kind: Copy>(
    parser: &mut Parser,
    option: &str,
    choices: &[(&str, Kind)],
) -> Result<Kind, Problem> {
    let name = text(parser, option)?;
    let known = choices.iter().find(|(known, _)| *known == name);
    known.map(|&(_, kind)| kind).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        Problem::usage(format!("--{option}: `{name}` is none of: {names}"))
    })
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
    value
        .parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            format!(
                "`{value}` is not a whole number from {} to {}",
                range.start(),
                range.end()
            )
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
