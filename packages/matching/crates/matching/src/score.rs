//! Greedy matching on one score: each unit in turn takes the nearest free unit of the other arm.
//!
//! Units that take matches are called takers, the units of the other arm donors. Without
//! replacement, the time is that of sorting the scores: a union-find structure skips taken donors.
//! Exact ties are broken by the row number.

use equipoise_random::SplitMix64;

use crate::closest::{Meeting, SortedRow};
use crate::parallel::{Progress, thread_count};
use crate::problem::to_u32;

/// Number of takers between two reports of progress.
const TAKERS_PER_REPORT: usize = 1 << 16;

/// The order in which takers take their donors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreOrder {
    /// The largest score first.
    Largest,
    /// The smallest score first.
    Smallest,
    /// The pair with the smallest distance first.
    Closest,
    /// A random order with this seed.
    Random(u64),
    /// The order of the rows.
    Data,
}

/// The units to match on a score, and the options. The caller has checked the lengths.
pub struct ScoreProblem<'a> {
    /// Score of each row, finite.
    pub score: &'a [f64],
    /// Whether each row is a taker; the other rows are donors.
    pub is_taker: &'a [bool],
    /// Cell of each row; only rows of one cell can be a pair. `None` for a single cell.
    pub cells: Option<&'a [u32]>,
    /// Largest number of donors of a taker.
    pub matches: usize,
    /// Largest difference of the scores of a pair; infinite for no limit.
    pub caliper: f64,
    /// The order of the takers, which matters only without replacement.
    pub order: ScoreOrder,
    /// Whether a donor may be in several pairs.
    pub replace: bool,
    /// Number of threads; 0 means one for each core. At most two are used.
    pub threads: usize,
}

impl ScoreProblem<'_> {
    /// Returns the taker and the donor of each pair, in the order of the takers' rows; `None` if
    /// `progress` stops the work. A taker takes one donor in each pass over all takers.
    #[must_use]
    pub fn pairs(&self, progress: &Progress<'_>) -> Option<Vec<(u32, u32)>> {
        let (takers, donors) = self.sorted_arms();
        let mut pairs = match self.order {
            _ if self.replace => {
                let line = Line::new(&donors);
                self.pairs_with_replacement(&line, &line.takers(&takers), progress)?
            }
            ScoreOrder::Closest => {
                let mut meeting = Meeting::new([takers, donors]);
                let mut pairs = Vec::new();
                for pass in 0..self.matches {
                    let count = pairs.len();
                    meeting.pass(self.caliper, &mut pairs);
                    if !progress(pass + 1, self.matches) {
                        return None;
                    }
                    if pairs.len() == count {
                        break;
                    }
                }
                pairs
            }
            _ => {
                let mut line = Line::new(&donors);
                let takers = self.in_order(line.takers(&takers));
                self.pairs_in_order(&mut line, takers, progress)?
            }
        };
        // The sort is stable, so that a taker's donors stay in the order of the passes.
        pairs.sort_by_key(|&(taker, _)| taker);
        Some(pairs)
    }

    /// Returns the takers and the donors, each sorted by cell, score and row.
    fn sorted_arms(&self) -> (Vec<SortedRow>, Vec<SortedRow>) {
        let sorted = |takes: bool| {
            let rows = (0..).zip(self.score).zip(self.is_taker);
            let mut rows: Vec<SortedRow> = rows
                .filter(|&(_, &is_taker)| is_taker == takes)
                .map(|((row, &score), _)| SortedRow {
                    // Adding 0 makes a negative zero positive.
                    score: score + 0.0,
                    cell: self.cells.map_or(0, |cells| cells[row as usize]),
                    row,
                })
                .collect();
            rows.sort_unstable_by(SortedRow::compare);
            rows
        };
        if thread_count(self.threads) == 1 {
            return (sorted(true), sorted(false));
        }
        std::thread::scope(|scope| {
            let takers = scope.spawn(|| sorted(true));
            let donors = sorted(false);
            (takers.join().expect("sorting does not panic"), donors)
        })
    }

    /// Returns the takers in the order in which they take donors. Equal scores keep the row order.
    fn in_order(&self, mut takers: Vec<Taker>) -> Vec<Taker> {
        match self.order {
            ScoreOrder::Largest => {
                takers.sort_by(|left, right| right.score.total_cmp(&left.score));
            }
            ScoreOrder::Smallest | ScoreOrder::Closest => {}
            ScoreOrder::Random(_) | ScoreOrder::Data => {
                takers.sort_unstable_by_key(|taker| taker.row);
            }
        }
        if let ScoreOrder::Random(seed) = self.order {
            let mut draws = SplitMix64::from_seed(seed);
            for position in (1..takers.len()).rev() {
                takers.swap(position, draws.below(position + 1));
            }
        }
        takers
    }

    fn pairs_in_order(
        &self,
        line: &mut Line,
        mut takers: Vec<Taker>,
        progress: &Progress<'_>,
    ) -> Option<Vec<(u32, u32)>> {
        let mut pairs = Vec::with_capacity(takers.len());
        let total = takers.len() * self.matches;
        let (mut finished, mut is_stopped) = (0, false);
        for _ in 0..self.matches {
            // A taker without a free donor finds none in later passes either.
            takers.retain(|taker| {
                finished += 1;
                if finished % TAKERS_PER_REPORT == 0 {
                    is_stopped |= !progress(finished, total);
                }
                if is_stopped {
                    return false;
                }
                let donor = line.take_nearest(taker, self.caliper);
                pairs.extend(donor.map(|donor| (taker.row, donor)));
                donor.is_some()
            });
        }
        (!is_stopped && progress(total, total)).then_some(pairs)
    }

    fn pairs_with_replacement(
        &self,
        line: &Line,
        takers: &[Taker],
        progress: &Progress<'_>,
    ) -> Option<Vec<(u32, u32)>> {
        let mut pairs = Vec::with_capacity(takers.len());
        let mut donors = Vec::new();
        for (index, taker) in takers.iter().enumerate() {
            donors.clear();
            line.add_nearest(taker, self.matches, self.caliper, &mut donors);
            pairs.extend(donors.iter().map(|&donor| (taker.row, donor)));
            if (index + 1) % TAKERS_PER_REPORT == 0 && !progress(index + 1, takers.len()) {
                return None;
            }
        }
        Some(pairs)
    }
}

/// A taker, and its place among the donors.
struct Taker {
    score: f64,
    row: u32,
    /// Index of the first node of the taker's cell that is not below its score, or of the wall
    /// behind the cell.
    place: u32,
}

/// The distinct scores of the donors, as nodes in ascending order, cell after cell. A wall stands
/// before each cell and at the end.
struct Line {
    /// Score of each node; NaN for a wall.
    score: Vec<f64>,
    cell: Vec<u32>,
    /// Index in `rows` of the first row of each node, and the number of rows at the end.
    starts: Vec<u32>,
    /// Index in `rows` of the first free row of each node.
    next: Vec<u32>,
    /// Rows of the donors, node after node, ascending in each node.
    rows: Vec<u32>,
    /// For each node itself if it has a free row, else a node to its left that may have one.
    left: Vec<u32>,
    /// For each node itself if it has a free row, else a node to its right that may have one.
    right: Vec<u32>,
}

impl Line {
    fn new(donors: &[SortedRow]) -> Self {
        let (mut score, mut cell, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        let mut last: Option<SortedRow> = None;
        for (index, &donor) in (0..).zip(donors) {
            if last.is_none_or(|last| last.cell != donor.cell) {
                score.push(f64::NAN);
                cell.push(donor.cell);
                starts.push(index);
            }
            if last.is_none_or(|last| !last.is_beside(&donor)) {
                score.push(donor.score);
                cell.push(donor.cell);
                starts.push(index);
            }
            last = Some(donor);
        }
        score.push(f64::NAN);
        cell.push(u32::MAX);
        let nodes: Vec<u32> = (0..to_u32(score.len())).collect();
        let rows = donors.iter().map(|donor| donor.row).collect();
        starts.push(to_u32(donors.len()));
        let next = starts.clone();
        starts.push(to_u32(donors.len()));
        Self {
            score,
            cell,
            starts,
            next,
            rows,
            left: nodes.clone(),
            right: nodes,
        }
    }

    /// Returns the takers whose cell has a donor, with their places.
    fn takers(&self, sorted: &[SortedRow]) -> Vec<Taker> {
        let mut place = 0;
        let mut takers = Vec::with_capacity(sorted.len());
        for taker in sorted {
            let is_before = |node: usize| {
                let is_below = self.is_wall(node) || self.score[node] < taker.score;
                self.cell[node] < taker.cell || (self.cell[node] == taker.cell && is_below)
            };
            while place + 1 < self.score.len() && is_before(place) {
                place += 1;
            }
            // The wall before the cell is left of the place, if the cell has a donor.
            if place > 0 && self.cell[place - 1] == taker.cell {
                takers.push(Taker {
                    score: taker.score,
                    row: taker.row,
                    place: to_u32(place),
                });
            }
        }
        takers
    }

    /// Takes the nearest free donor within the caliper, and returns its row.
    fn take_nearest(&mut self, taker: &Taker, caliper: f64) -> Option<u32> {
        let left = find(&mut self.left, taker.place - 1);
        let right = find(&mut self.right, taker.place);
        let distances = [left, right].map(|node| self.distance(node, taker.score));
        let node = match distances {
            [None, None] => return None,
            [Some(_), None] => left,
            [None, Some(_)] => right,
            [Some(below), Some(above)] => {
                let is_first = || self.first_row(left) < self.first_row(right);
                let order = below.total_cmp(&above);
                if order.is_lt() || (order.is_eq() && is_first()) {
                    left
                } else {
                    right
                }
            }
        };
        let is_near = |distance: f64| distance <= caliper;
        if !self.distance(node, taker.score).is_some_and(is_near) {
            return None;
        }
        let row = self.first_row(node);
        self.next[node] += 1;
        if self.next[node] == self.starts[node + 1] {
            // A wall is never taken, so a node has neighbours on both sides.
            self.left[node] = to_u32(node - 1);
            self.right[node] = to_u32(node + 1);
        }
        Some(row)
    }

    /// Adds the nearest `count` donors within the caliper, the nearest first, without taking them.
    fn add_nearest(&self, taker: &Taker, count: usize, caliper: f64, donors: &mut Vec<u32>) {
        let (mut left, mut right) = (taker.place as usize - 1, taker.place as usize);
        while donors.len() < count {
            let below = self.distance(left, taker.score).unwrap_or(f64::NAN);
            let above = self.distance(right, taker.score).unwrap_or(f64::NAN);
            let nearest = below.min(above); // The minimum of NaN and a number is the number.
            if nearest.is_nan() || nearest > caliper {
                break;
            }
            let first_new = donors.len();
            if below <= nearest {
                donors.extend_from_slice(self.first_rows(left, count - first_new));
                left -= 1;
            }
            if above <= nearest {
                donors.extend_from_slice(self.first_rows(right, count - first_new));
                right += 1;
            }
            donors[first_new..].sort_unstable();
            donors.truncate(count);
        }
    }

    fn is_wall(&self, node: usize) -> bool {
        self.score[node].is_nan()
    }

    /// Returns the distance of a node from a score; `None` for a wall.
    fn distance(&self, node: usize, score: f64) -> Option<f64> {
        (!self.is_wall(node)).then(|| (self.score[node] - score).abs())
    }

    /// Returns the first free row of a node that has one.
    fn first_row(&self, node: usize) -> u32 {
        self.rows[self.next[node] as usize]
    }

    /// Returns the first rows of a node, at most `count`, taken or not.
    fn first_rows(&self, node: usize, count: usize) -> &[u32] {
        let (start, end) = (self.starts[node] as usize, self.starts[node + 1] as usize);
        &self.rows[start..end.min(start + count)]
    }
}

/// Follows the links from a node to the node that links to itself, and halves the path.
fn find(links: &mut [u32], start: u32) -> usize {
    let mut node = start as usize;
    loop {
        let linked = links[node] as usize;
        if linked == node {
            return node;
        }
        links[node] = links[linked];
        node = links[node] as usize;
    }
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
