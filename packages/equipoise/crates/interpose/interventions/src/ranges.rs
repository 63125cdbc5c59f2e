//! Memory that is private, without a file, and may be written to.

/// Addresses from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: usize,
    pub end: usize,
    pub writable: bool,
}

const CAPACITY: usize = 512;

/// Ranges that do not overlap. A range without room is forgotten, which makes it unknown, not wrong.
pub struct Ranges {
    known: [Range; CAPACITY],
    count: usize,
}

impl Ranges {
    /// Returns no ranges.
    pub const fn new() -> Self {
        const NONE: Range = Range {
            start: 0,
            end: 0,
            writable: false,
        };
        Self {
            known: [NONE; CAPACITY],
            count: 0,
        }
    }

    /// Adds memory that was just mapped.
    pub fn add(&mut self, range: Range) {
        self.remove(range.start, range.end);
        let neighbour = self.known[..self.count].iter_mut().find(|known| {
            known.writable == range.writable
                && (known.end == range.start || known.start == range.end)
        });
        if let Some(known) = neighbour {
            known.start = known.start.min(range.start);
            known.end = known.end.max(range.end);
            return;
        }
        self.push(range);
    }

    /// Forgets the addresses from `start` to `end`.
    pub fn remove(&mut self, start: usize, end: usize) {
        let mut place = 0;
        while place < self.count {
            let range = self.known[place];
            if range.end <= start || end <= range.start {
                place += 1;
                continue;
            }
            self.count -= 1;
            self.known[place] = self.known[self.count];
            // The rest on either side goes to the end, where this loop passes over it.
            if range.start < start {
                self.push(Range {
                    end: start,
                    ..range
                });
            }
            if end < range.end {
                self.push(Range {
                    start: end,
                    ..range
                });
            }
        }
    }

    /// Changes whether a range may be written to; an unknown range stays unknown.
    pub fn protect(&mut self, start: usize, end: usize, writable: bool) {
        let known = self.covers(start, end, false);
        self.remove(start, end);
        if known {
            self.add(Range {
                start,
                end,
                writable,
            });
        }
    }

    /// Whether a whole range is known, and writable if `to_write`.
    pub fn covers(&self, start: usize, end: usize, to_write: bool) -> bool {
        let mut at = start;
        while at < end {
            let holds = |range: &&Range| (range.start..range.end).contains(&at);
            let range = self.known[..self.count].iter().find(holds);
            match range.filter(|range| range.writable || !to_write) {
                Some(range) => at = range.end,
                None => return false,
            }
        }
        true
    }

    fn push(&mut self, range: Range) {
        if self.count < CAPACITY {
            self.known[self.count] = range;
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writable(start: usize, end: usize) -> Range {
        Range {
            start,
            end,
            writable: true,
        }
    }

    #[test]
    fn what_was_unmapped_in_the_middle_is_known_no_more() {
        let mut ranges = Ranges::new();
        ranges.add(writable(10, 50));
        ranges.remove(20, 30);
        assert!(ranges.covers(10, 20, true));
        assert!(ranges.covers(30, 50, true));
        assert!(!ranges.covers(19, 21, true));
        assert!(!ranges.covers(29, 31, true));
        ranges.remove(0, 100);
        assert!(!ranges.covers(10, 11, false));
    }

    #[test]
    fn neighbours_are_one() {
        let mut ranges = Ranges::new();
        for start in 0..2 * CAPACITY {
            ranges.add(writable(start, start + 1));
        }
        assert!(ranges.covers(0, 2 * CAPACITY, true));
        assert_eq!(ranges.count, 1);
    }

    #[test]
    fn what_may_not_be_written_to_is_known_as_such() {
        let mut ranges = Ranges::new();
        ranges.add(writable(0, 100));
        ranges.protect(40, 60, false);
        assert!(ranges.covers(0, 100, false));
        assert!(!ranges.covers(0, 100, true));
        ranges.protect(40, 60, true);
        assert!(ranges.covers(0, 100, true));
        ranges.protect(90, 110, true);
        assert!(!ranges.covers(95, 105, false));
    }

    #[test]
    fn what_finds_no_room_is_only_not_known() {
        let mut ranges = Ranges::new();
        for number in 0..=CAPACITY {
            ranges.add(writable(10 * number, 10 * number + 5));
        }
        assert!(ranges.covers(0, 5, true));
        assert!(!ranges.covers(10 * CAPACITY, 10 * CAPACITY + 5, true));
    }
}
