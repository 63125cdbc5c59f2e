//! Memory that a process comes back to.

use std::hint::black_box;

/// What the caches of nearly all processors hold together.
const LINE: usize = 64;

const WORDS_IN_A_LINE: usize = LINE / size_of::<u64>();

/// So many bytes, of which one word in each cache line is read and written at each visit.
pub struct WorkingSet(Vec<u64>);

impl WorkingSet {
    /// So many bytes, visited once: the pages are there from then on.
    pub fn new(bytes: u64) -> Self {
        let words = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<u64>();
        let mut set = Self(vec![0; words]);
        set.visit();
        set
    }

    /// Adds one to a word of each cache line.
    pub fn visit(&mut self) {
        for word in black_box(&mut self.0).iter_mut().step_by(WORDS_IN_A_LINE) {
            *word = word.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WorkingSet;

    #[test]
    fn a_visit_reaches_every_cache_line_once() {
        let mut set = WorkingSet::new(256);
        set.visit();
        let visited: Vec<_> = (0..4).flat_map(|_| [2, 0, 0, 0, 0, 0, 0, 0]).collect();
        assert_eq!(set.0, visited);
    }

    #[test]
    fn no_bytes_are_nothing_to_visit() {
        let mut set = WorkingSet::new(0);
        set.visit();
        assert!(set.0.is_empty());
    }
}
