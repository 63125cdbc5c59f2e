//! A list of ranges of private memory without a file, and whether each range is writable.

/// Addresses from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: usize,
    pub end: usize,
    pub writable: bool,
}

impl Range {
    pub fn is_writable(&self) -> bool {
        self.writable
    }
}

/// Maximum number of ranges in the list.
const CAPACITY: usize = 512;

/// Ranges that do not overlap. If the list is full, further ranges are left out.
pub struct Ranges {
    ranges: [Range; CAPACITY],
    count: usize,
}

impl Ranges {
    pub const fn new() -> Self {
        const NONE: Range = Range {
            start: 0,
            end: 0,
            writable: false,
        };
        Self {
            ranges: [NONE; CAPACITY],
            count: 0,
        }
    }

    /// Adds a range in place of the parts of ranges that it overlaps.
    pub fn add(&mut self, range: Range) {
        self.remove(range.start, range.end);
        let neighbour = self.ranges[..self.count].iter_mut().find(|known| {
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

    /// Removes the addresses from `start` to `end` from all ranges.
    pub fn remove(&mut self, start: usize, end: usize) {
        let mut index = 0;
        while index < self.count {
            let range = self.ranges[index];
            if range.end <= start || end <= range.start {
                index += 1;
                continue;
            }
            self.count -= 1;
            self.ranges[index] = self.ranges[self.count];
            // The remaining parts go to the end of the list, behind the ranges of this loop.
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

    /// Changes whether a range is writable, if the range is in the list.
    pub fn protect(&mut self, start: usize, end: usize, writable: bool) {
        let is_known = self.covers(start, end, |_| true);
        self.remove(start, end);
        if is_known {
            self.add(Range {
                start,
                end,
                writable,
            });
        }
    }

    /// Whether all addresses from `start` to `end` are in ranges of the list that `accept` accepts.
    pub fn covers(&self, start: usize, end: usize, accept: fn(&Range) -> bool) -> bool {
        let mut address = start;
        while address < end {
            let contains = |range: &&Range| (range.start..range.end).contains(&address);
            let range = self.ranges[..self.count].iter().find(contains);
            match range.filter(|range| accept(range)) {
                Some(range) => address = range.end,
                None => return false,
            }
        }
        true
    }

    fn push(&mut self, range: Range) {
        if self.count < CAPACITY {
            self.ranges[self.count] = range;
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
    fn a_range_removed_from_the_middle_is_unknown() {
        let mut ranges = Ranges::new();
        ranges.add(writable(10, 50));
        ranges.remove(20, 30);
        assert!(ranges.covers(10, 20, Range::is_writable));
        assert!(ranges.covers(30, 50, Range::is_writable));
        assert!(!ranges.covers(19, 21, Range::is_writable));
        assert!(!ranges.covers(29, 31, Range::is_writable));
        ranges.remove(0, 100);
        assert!(!ranges.covers(10, 11, |_| true));
    }

    #[test]
    fn adjacent_ranges_become_one() {
        let mut ranges = Ranges::new();
        for start in 0..2 * CAPACITY {
            ranges.add(writable(start, start + 1));
        }
        assert!(ranges.covers(0, 2 * CAPACITY, Range::is_writable));
        assert_eq!(ranges.count, 1);
    }

    #[test]
    fn a_protected_range_is_known_but_not_writable() {
        let mut ranges = Ranges::new();
        ranges.add(writable(0, 100));
        ranges.protect(40, 60, false);
        assert!(ranges.covers(0, 100, |_| true));
        assert!(!ranges.covers(0, 100, Range::is_writable));
        ranges.protect(40, 60, true);
        assert!(ranges.covers(0, 100, Range::is_writable));
        ranges.protect(90, 110, true);
        assert!(!ranges.covers(95, 105, |_| true));
    }

    #[test]
    fn a_range_that_does_not_fit_into_the_list_is_unknown() {
        let mut ranges = Ranges::new();
        for number in 0..=CAPACITY {
            ranges.add(writable(10 * number, 10 * number + 5));
        }
        assert!(ranges.covers(0, 5, Range::is_writable));
        assert!(!ranges.covers(10 * CAPACITY, 10 * CAPACITY + 5, Range::is_writable));
    }
}
