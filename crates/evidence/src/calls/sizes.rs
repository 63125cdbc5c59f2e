//! The most frequent of many numbers, in little memory.

use std::collections::HashMap;

/// So many numbers are followed at once.
const FOLLOWED: usize = 64;
/// So many are told.
const TOLD: usize = 8;

/// Counts numbers; exact while there are few different ones, and then for those that make up
/// more than a share of `1 / FOLLOWED` at the least (Misra and Gries 1982).
#[derive(Debug, Default)]
pub struct Frequent {
    counts: HashMap<u64, u64>,
}

impl Frequent {
    pub fn add(&mut self, number: u64) {
        if let Some(count) = self.counts.get_mut(&number) {
            *count += 1;
        } else if self.counts.len() < FOLLOWED {
            self.counts.insert(number, 1);
        } else {
            self.counts.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// The most frequent first, each with a lower bound of its count.
    pub fn most(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = self
            .counts
            .iter()
            .map(|(number, count)| (*number, *count))
            .collect();
        all.sort_by_key(|(number, count)| (std::cmp::Reverse(*count), *number));
        all.truncate(TOLD);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_different_numbers_are_counted_exactly() {
        let mut frequent = Frequent::default();
        for number in [5, 7, 5, 9, 5, 7] {
            frequent.add(number);
        }
        assert_eq!(frequent.most(), [(5, 3), (7, 2), (9, 1)]);
    }

    #[test]
    fn a_frequent_number_is_found_among_many_rare_ones() {
        let mut frequent = Frequent::default();
        for rare in 0..10_000 {
            frequent.add(1_000_000 + rare);
            frequent.add(42);
        }
        let (number, count) = frequent.most()[0];
        assert_eq!(number, 42);
        assert!((9_500..=10_000).contains(&count), "{count}");
    }
}
