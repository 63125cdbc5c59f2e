//! Workload `wordsearch`: searches repeatedly for one random word, by linear or binary search.
//!
//! This is the second program of Tratt, "Minimum Times Tend to Mislead When Benchmarking" (2019),
//! rewritten. Each process draws a word, which decides how long a linear search takes.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::time::Instant;

use crate::arguments::Options;
use crate::dictionary::{read_count, read_words};
use crate::metrics::Report;
use crate::problem::Problem;
use crate::workload::Workload;

pub const WORKLOAD: Workload = Workload {
    name: "wordsearch",
    summary: "searches for one random word (--algorithm linear|binary, --searches)",
    help: "usage: equipoise-workload wordsearch --algorithm linear|binary [--searches N]
                                     [--words N] [--word-seed N] [--dictionary FILE | made]

  --algorithm NAME   linear: search from the first word on; binary: sort the words, then search
  --searches N       number of searches for the word (default 10000)
  --words N          number of words to use from the dictionary, evenly spaced (default: all)
  --word-seed N      seed that decides the word (default: drawn in each process)
  --dictionary FILE  file with one word in each line (default /usr/share/dict/words); made: a
                     generated list, which is also used if the default file does not exist

Reports search_s, the time of all searches, without loading and sorting; steps, the number of
compared words; and, for binary, sort_s.
",
    run,
};

/// How the word is searched for.
#[derive(Clone, Copy)]
enum Algorithm {
    Linear,
    Binary,
}

const ALGORITHMS: [(&str, Algorithm); 2] =
    [("linear", Algorithm::Linear), ("binary", Algorithm::Binary)];

impl Algorithm {
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

fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut searches = 10_000;
    let (mut algorithm, mut word_count, mut word_seed, mut dictionary) = (None, None, None, None);
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "algorithm" => algorithm = Some(options.choice(&ALGORITHMS)?),
            "searches" => searches = options.number(1..=1 << 32)?,
            "words" => word_count = read_count(options)?,
            "word-seed" => word_seed = Some(options.number(0..=u64::MAX)?),
            "dictionary" => dictionary = Some(options.text()?),
            _ => return Err(options.unknown_option()),
        }
    }
    let algorithm =
        algorithm.ok_or_else(|| Problem::usage("--algorithm is missing; give linear or binary"))?;
    let mut words = read_words(dictionary.as_deref(), word_count)?;
    let seed = word_seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    let word = words.list[word_index(seed, words.list.len())].clone();
    let mut report = Report::default();
    if matches!(algorithm, Algorithm::Binary) {
        let started = Instant::now();
        words.list.sort_unstable();
        report = report.time("sort_s", started.elapsed());
    }
    // The comparisons are counted first, because counting would slow the timed searches.
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

/// Returns the index of the word to search for. A uniform seed gives a uniform index.
fn word_index(seed: u64, count: usize) -> usize {
    usize::try_from((u128::from(seed) * count as u128) >> 64).expect("below the count")
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, word_index};

    fn words() -> Vec<String> {
        (100..200).map(|number| number.to_string()).collect()
    }

    #[test]
    fn both_algorithms_find_every_word_where_it_is() {
        let words = words();
        for (index, word) in words.iter().enumerate() {
            for algorithm in [Algorithm::Linear, Algorithm::Binary] {
                assert_eq!(algorithm.find(&words, word, || ()), Some(index));
            }
        }
    }

    #[test]
    fn linear_search_compares_all_words_up_to_the_word_and_binary_search_few() {
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
    fn an_absent_word_is_not_found() {
        for algorithm in [Algorithm::Linear, Algorithm::Binary] {
            assert_eq!(algorithm.find(&words(), "none", || ()), None);
        }
    }

    #[test]
    fn seeds_reach_the_first_word_and_the_last() {
        assert_eq!(word_index(0, 100), 0);
        assert_eq!(word_index(u64::MAX, 100), 99);
    }
}
