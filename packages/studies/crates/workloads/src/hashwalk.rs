//! Workload `hashwalk`: visits the entries of a hash map until one value is found.
//!
//! This is the first program of Tratt, "Minimum Times Tend to Mislead When Benchmarking" (2019),
//! rewritten. A random seed decides where the value is, and so how long the walk is.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::hint::black_box;
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::arguments::Options;
use crate::dictionary::{read_count, read_words};
use crate::metrics::Report;
use crate::problem::Problem;
use crate::workload::Workload;

pub const WORKLOAD: Workload = Workload {
    name: "hashwalk",
    summary: "walks of a randomly seeded map to one value (--walks, --map-seed)",
    help: "usage: equipoise-workload hashwalk [--walks N] [--words N] [--map-seed N]
                                   [--dictionary FILE | made]

  --walks N          number of walks from the first entry of the map to the value (default 1000)
  --words N          number of words to use from the dictionary, evenly spaced (default: all)
  --map-seed N       the seed of the map (default: drawn in each process)
  --dictionary FILE  file with one word in each line (default /usr/share/dict/words); made: a
                     generated list, which is also used if the default file does not exist

The keys of the map are the SHA-256 of the words. The value is the middle word of the list. Reports
search_s, the time of all walks, and steps, the number of visited entries.
",
    run,
};

/// The SHA-256 of a word.
type Key = [u8; 32];

/// The standard library's hash with a fixed seed.
#[derive(Clone, Copy)]
struct SeededHash(u64);

impl SeededHash {
    /// Draws a random seed from the operating system.
    fn random() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for SeededHash {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut walks = 1000;
    let (mut word_count, mut map_seed, mut dictionary) = (None, None, None);
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "walks" => walks = options.number(1..=1 << 32)?,
            "words" => word_count = read_count(options)?,
            "map-seed" => map_seed = Some(SeededHash(options.number(0..=u64::MAX)?)),
            "dictionary" => dictionary = Some(options.text()?),
            _ => return Err(options.unknown_option()),
        }
    }
    let words = read_words(dictionary.as_deref(), word_count)?;
    let value = words.list[words.list.len() / 2].clone();
    let map = map_by_digest(words.list, map_seed.unwrap_or_else(SeededHash::random));
    let started = Instant::now();
    let walk_once = |_| walk(black_box(&map), black_box(&value));
    let steps: usize = (0..walks).map(walk_once).sum();
    let elapsed = started.elapsed();
    Ok(Report::default()
        .time("search_s", elapsed)
        .cost("steps", steps as f64, "1")
        .fact("words_from", words.source))
}

fn map_by_digest(words: Vec<String>, seed: SeededHash) -> HashMap<Key, String, SeededHash> {
    let mut map = HashMap::with_hasher(seed);
    map.extend(
        words
            .into_iter()
            .map(|word| (Sha256::digest(&word).into(), word)),
    );
    map
}

/// Returns the number of visited entries until the value is found.
fn walk(map: &HashMap<Key, String, SeededHash>, value: &str) -> usize {
    let position = map.values().position(|word| word == value);
    position.map_or(map.len(), |position| position + 1)
}

#[cfg(test)]
mod tests {
    use super::{SeededHash, map_by_digest, walk};

    fn words(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("word {number}")).collect()
    }

    #[test]
    fn the_seed_decides_how_long_the_walk_is() {
        let steps = |seed| walk(&map_by_digest(words(1000), SeededHash(seed)), "word 500");
        assert_eq!(steps(1), steps(1));
        let mut lengths: Vec<usize> = (0..20).map(steps).collect();
        lengths.sort_unstable();
        lengths.dedup();
        assert!(lengths.len() > 10, "{lengths:?}");
        assert!(lengths.iter().all(|length| (1..=1000).contains(length)));
    }

    #[test]
    fn a_walk_for_an_absent_value_visits_every_entry() {
        assert_eq!(
            walk(&map_by_digest(words(100), SeededHash::random()), "no word"),
            100
        );
    }

    #[test]
    fn random_seeds_differ() {
        assert_ne!(SeededHash::random().0, SeededHash::random().0);
    }
}
