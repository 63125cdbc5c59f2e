//! Workload `wordsearch`: one random word, searched repeatedly, by linear or binary search.
//!
//! The second program of Tratt, "Minimum Times Tend to Mislead When Benchmarking" (2019), written
//! again: the word is drawn in each process and decides how long a linear search takes.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::time::Instant;

use crate::arguments::Options;
use crate::metrics::Report;
use crate::problem::Problem;
use crate::words::{read_count, words};
use crate::workload::Workload;

pub const WORKLOAD: Workload = Workload {
    name: "wordsearch",
    summary: "searches for one random word (--algorithm linear|binary, --searches)",
    help: "usage: equipoise-workload wordsearch --algorithm linear|binary [--searches N]
                                     [--words N] [--word-seed N] [--dictionary FILE | made]

  --algorithm NAME   linear: from the first word on; binary: after a sort
  --searches N       look for the word so often (default 10000)
  --words N          so many words of the dictionary, evenly spaced (default: all)
  --word-seed N      decides the word (default: drawn in each process)
  --dictionary FILE  a word a line (default /usr/share/dict/words; made: a list of our own, which is
                     also what is taken where there is no such file)

Reports search_s, the time of all searches without that of loading and sorting; steps, the words
that they compared; for binary also sort_s.
",
    run,
};

#[derive(Clone, Copy)]
enum Algorithm {
    Linear,
    Binary,
}

const ALGORITHMS: [(&str, Algorithm); 2] =
    [("linear", Algorithm::Linear), ("binary", Algorithm::Binary)];

impl Algorithm {
    /// Finds a word by this algorithm; `visit` is called for every comparison.
    fn find(self, words: &[String], word: &str, mut visit: impl FnMut()) -> Option<usize> {
        match self {
            Self::Linear => words.iter().position(|candidate| {
                visit();
                candidate == word
            }),
            Self::Binary => words
                .binary_search_by(|candidate| -> Ordering {
                    visit();
                    candidate.as_str().cmp(word)
                })
                .ok(),
        }
    }
}

/// Reads the options and does the searches.
fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut searches = 10_000;
    let (mut algorithm, mut count, mut seed, mut dictionary) = (None, None, None, None);
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "algorithm" => algorithm = Some(options.choice(&ALGORITHMS)?),
            "searches" => searches = options.number(1..=1 << 32)?,
            "words" => count = read_count(options)?,
            "word-seed" => seed = Some(options.number(0..=u64::MAX)?),
            "dictionary" => dictionary = Some(options.text()?),
            _ => return Err(options.unknown()),
        }
    }
    let algorithm =
        algorithm.ok_or_else(|| Problem::usage("--algorithm is missing: linear or binary"))?;
    let mut words = words(dictionary.as_deref(), count)?;
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    let word = words.list[chosen(seed, words.list.len())].clone();
    let mut report = Report::default();
    if matches!(algorithm, Algorithm::Binary) {
        let started = Instant::now();
        words.list.sort_unstable();
        report = report.time("sort_s", started.elapsed());
    }
    // Counted beforehand, so that the counting is not timed.
    let mut steps = 0_u64;
    if algorithm.find(&words.list, &word, || steps += 1).is_none() {
        return Err(Problem::failure("a word of the list was not found in it"));
    }
    let started = Instant::now();
    for _ in 0..searches {
        black_box(algorithm.find(black_box(&words.list), black_box(&word), || ()));
    }
    let elapsed = started.elapsed();
    Ok(report
        .time("search_s", elapsed)
        .cost("steps", (steps * searches) as f64, "1")
        .fact("words_from", words.source))
}

/// The place of the word: uniform over the list for uniform seeds.
fn chosen(seed: u64, count: usize) -> usize {
    usize::try_from((u128::from(seed) * count as u128) >> 64).expect("below the count")
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, chosen};

    fn words() -> Vec<String> {
        (100..200).map(|number| number.to_string()).collect()
    }

    #[test]
    fn both_algorithms_find_every_word_where_it_is() {
        let words = words();
        for (place, word) in words.iter().enumerate() {
            for algorithm in [Algorithm::Linear, Algorithm::Binary] {
                assert_eq!(algorithm.find(&words, word, || ()), Some(place));
            }
        }
    }

    #[test]
    fn linear_compares_as_many_words_as_stand_before_it_and_binary_few() {
        let words = words();
        let steps = |algorithm: Algorithm, word: &str| {
            let mut steps = 0;
            algorithm.find(&words, word, || steps += 1);
            steps
        };
        assert_eq!(steps(Algorithm::Linear, "100"), 1);
        assert_eq!(steps(Algorithm::Linear, "199"), 100);
        assert!(steps(Algorithm::Binary, "199") <= 8);
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for algorithm in [Algorithm::Linear, Algorithm::Binary] {
            assert_eq!(algorithm.find(&words(), "none", || ()), None);
        }
    }

    #[test]
    fn seeds_reach_the_first_word_and_the_last() {
        assert_eq!(chosen(0, 100), 0);
        assert_eq!(chosen(u64::MAX, 100), 99);
    }
}
