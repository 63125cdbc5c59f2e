//! The words for `hashwalk` and `wordsearch`: the system's dictionary, or a generated list.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::arguments::{Options, parse_number, to_usize};
use crate::problem::Problem;
use equipoise_random::Draws;

/// Value of `--dictionary` for the generated list.
pub const MADE: &str = "made";

const SYSTEM_DICTIONARY: &str = "/usr/share/dict/words";
/// Number of generated words, as in Debian's wamerican 2020.12.07.
const GENERATED_WORDS: usize = 104_334;
/// Seed of the generated words.
const SEED: u64 = 2019;
const CONSONANTS: &[u8] = b"bcdfghjklmnprstvwz";
const VOWELS: &[u8] = b"aeiou";

/// The words in the order of their dictionary.
#[derive(Debug)]
pub struct Words {
    pub list: Vec<String>,
    /// Source of the words: the path of a file, or `made`.
    pub source: String,
}

/// Reads a dictionary, or generates a list of words. `dictionary` is a path or `made`. The default is
/// the system's dictionary or, if there is none, `made`. With a `count`, only this number of evenly
/// spaced words is returned. A dictionary with fewer words is an error.
pub fn read_words(dictionary: Option<&str>, count: Option<usize>) -> Result<Words, Problem> {
    let words = match dictionary {
        Some(MADE) => generate(GENERATED_WORDS),
        Some(path) => read(path)?,
        None if Path::new(SYSTEM_DICTIONARY).is_file() => read(SYSTEM_DICTIONARY)?,
        None => generate(GENERATED_WORDS),
    };
    match count {
        Some(count) if count > words.list.len() => Err(Problem::usage(format!(
            "--words {count} is too many: {} has {} words",
            words.source,
            words.list.len()
        ))),
        Some(count) => Ok(evenly_spaced(words, count)),
        None => Ok(words),
    }
}

/// Reads the value of `--words`: a number, or `all`, which gives `None`.
pub fn read_count(options: &mut Options) -> Result<Option<usize>, Problem> {
    parse_count(&options.text()?)
}

fn parse_count(value: &str) -> Result<Option<usize>, Problem> {
    if value == "all" {
        return Ok(None);
    }
    parse_number(value, 1..=1 << 24)
        .map(|count| Some(to_usize(count)))
        .map_err(|message| Problem::usage(format!("--words: {message}, nor `all`")))
}

fn read(path: &str) -> Result<Words, Problem> {
    let text = fs::read_to_string(path)
        .map_err(|error| Problem::failure(format!("cannot read {path}: {error}")))?;
    let lines = text.lines().filter(|line| !line.is_empty());
    let list: Vec<String> = lines.map(str::to_owned).collect();
    if list.is_empty() {
        return Err(Problem::failure(format!("{path} has no words")));
    }
    Ok(Words {
        list,
        source: path.to_owned(),
    })
}

fn generate(count: usize) -> Words {
    let draws = Draws::from_seed(SEED);
    let mut words = BTreeSet::new();
    let mut index = 0;
    while words.len() < count {
        words.insert(generate_word(draws.bits_at(index)));
        index += 1;
    }
    Words {
        list: words.into_iter().collect(),
        source: MADE.to_owned(),
    }
}

/// Returns a word of two to five syllables, from 64 random bits.
fn generate_word(mut bits: u64) -> String {
    let mut below = |limit: usize| {
        let remainder = bits % limit as u64;
        bits /= limit as u64;
        to_usize(remainder)
    };
    let syllables = 2 + below(4);
    let mut letter = |letters: &[u8]| char::from(letters[below(letters.len())]);
    (0..syllables)
        .flat_map(|_| [letter(CONSONANTS), letter(VOWELS)])
        .collect()
}

fn evenly_spaced(words: Words, count: usize) -> Words {
    let word = |index: usize| words.list[index * words.list.len() / count].clone();
    Words {
        list: (0..count).map(word).collect(),
        source: words.source,
    }
}

#[cfg(test)]
mod tests {
    use super::{MADE, parse_count, read_words};

    #[test]
    fn generated_words_are_distinct_sorted_and_the_same_every_time() {
        let first = read_words(Some(MADE), None).unwrap().list;
        assert!(first.is_sorted_by(|one, next| one < next));
        assert_eq!(first, read_words(Some(MADE), None).unwrap().list);
    }

    #[test]
    fn a_smaller_number_of_words_is_spread_over_the_whole_list() {
        let all = read_words(Some(MADE), None).unwrap().list;
        let sample = read_words(Some(MADE), Some(10)).unwrap().list;
        assert_eq!(sample.len(), 10);
        assert_eq!(sample[0], all[0]);
        assert!(sample[9] >= all[all.len() * 9 / 10]);
    }

    #[test]
    fn a_count_is_a_number_or_all() {
        assert_eq!(parse_count("all").unwrap(), None);
        assert_eq!(parse_count("7").unwrap(), Some(7));
        assert!(
            parse_count("few")
                .unwrap_err()
                .to_string()
                .contains("`few`")
        );
    }

    #[test]
    fn an_error_for_too_many_words_gives_the_size_of_the_dictionary() {
        let problem = read_words(Some(MADE), Some(1 << 30))
            .unwrap_err()
            .to_string();
        assert!(problem.contains("104334"), "{problem}");
    }
}
