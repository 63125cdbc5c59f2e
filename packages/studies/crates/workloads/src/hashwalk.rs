//! Workload `hashwalk`: a map with a random seed, walked until one value turns up.
//!
//! The first program of Tratt, "Minimum Times Tend to Mislead When Benchmarking" (2019), written
//! again: the seed decides the place of the value, and so how long each walk is.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::hint::black_box;
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::arguments::Options;
use crate::metrics::Report;
use crate::problem::Problem;
use crate::words::{read_count, words};
use crate::workload::Workload;

pub const WORKLOAD: Workload = Workload {
    name: "hashwalk",
    summary: "walks of a randomly seeded map to one value (--walks, --map-seed)",
    help: "usage: equipoise-workload hashwalk [--walks N] [--words N] [--map-seed N]
                                   [--dictionary FILE | made]

  --walks N          so many walks from the map's beginning to one value (default 1000)
  --words N          so many words of the dictionary, evenly spaced (default: all)
  --map-seed N       the seed of the map (default: drawn in each process)
  --dictionary FILE  a word a line (default /usr/share/dict/words; made: a list of our own, which is
                     also what is taken where there is no such file)

The map goes from the SHA-256 of each word to the word. The value is the middle word of the list.
Reports search_s, the time of all walks, and steps, the entries that they visited.
",
    run,
};

type Key = [u8; 32];

/// Seeds the standard library's hash by a number, in the same way as its random state.
#[derive(Clone, Copy)]
struct Seeded(u64);

impl Seeded {
    /// A seed that the operating system draws.
    fn drawn() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

/// Reads the options and does the walks.
fn run(options: &mut Options) -> Result<Report, Problem> {
    let mut walks = 1000;
    let (mut count, mut seed, mut dictionary) = (None, None, None);
    while let Some(name) = options.next_name()? {
        match name.as_str() {
            "walks" => walks = options.number(1..=1 << 32)?,
            "words" => count = read_count(options)?,
            "map-seed" => seed = Some(Seeded(options.number(0..=u64::MAX)?)),
            "dictionary" => dictionary = Some(options.text()?),
            _ => return Err(options.unknown()),
        }
    }
    let words = words(dictionary.as_deref(), count)?;
    let value = words.list[words.list.len() / 2].clone();
    let map = by_digest(words.list, seed.unwrap_or_else(Seeded::drawn));
    let started = Instant::now();
    let walk_once = |_| walk(black_box(&map), black_box(&value));
    let steps: usize = (0..walks).map(walk_once).sum();
    let elapsed = started.elapsed();
    Ok(Report::default()
        .time("search_s", elapsed)
        .cost("steps", steps as f64, "1")
        .fact("words_from", words.source))
}

fn by_digest(words: Vec<String>, seed: Seeded) -> HashMap<Key, String, Seeded> {
    let mut map = HashMap::with_hasher(seed);
    map.extend(
        words
            .into_iter()
            .map(|word| (Sha256::digest(&word).into(), word)),
    );
    map
}

/// Number of entries that a walk visits until it finds the value.
fn walk(map: &HashMap<Key, String, Seeded>, value: &str) -> usize {
    let place = map.values().position(|word| word == value);
    place.map_or(map.len(), |place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::{Seeded, by_digest, walk};

    fn words(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("word {number}")).collect()
    }

    #[test]
    fn the_seed_decides_how_long_the_walk_is() {
        let steps = |seed| walk(&by_digest(words(1000), Seeded(seed)), "word 500");
        assert_eq!(steps(1), steps(1));
        let mut lengths: Vec<usize> = (0..20).map(steps).collect();
        lengths.sort_unstable();
        lengths.dedup();
        assert!(lengths.len() > 10, "{lengths:?}");
        assert!(lengths.iter().all(|length| (1..=1000).contains(length)));
    }

    #[test]
    fn a_walk_for_what_is_not_there_visits_every_entry() {
        assert_eq!(
            walk(&by_digest(words(100), Seeded::drawn()), "no word"),
            100
        );
    }

    #[test]
    fn drawn_seeds_differ() {
        assert_ne!(Seeded::drawn().0, Seeded::drawn().0);
    }
}
