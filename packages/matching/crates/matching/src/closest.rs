//! Greedy matching on one score, the closest pair first.
//!
//! Between two scores at the smallest distance, there is no score of a free unit of either arm.
//! So the closest pair is always a pair of neighbours in the sorted list of all free units, and a
//! heap of such neighbours finds the pairs in the time of sorting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::to_u32;

/// Link to the end of the list.
const END: u32 = u32::MAX;
const TAKERS: usize = 0;
const DONORS: usize = 1;

/// Distance of a pair as bits, its taker, its donor, and the node on the left. Bits of distances
/// have the order of the distances, because no distance is negative.
type Candidate = Reverse<(u64, u32, u32, u32)>;

/// A row in the order of the scores.
#[derive(Clone, Copy)]
pub(crate) struct SortedRow {
    pub score: f64,
    pub cell: u32,
    pub row: u32,
}

impl SortedRow {
    /// Orders rows by cell, score and row number.
    pub fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let cells = self.cell.cmp(&other.cell);
        let scores = || self.score.total_cmp(&other.score);
        cells.then_with(scores).then(self.row.cmp(&other.row))
    }

    /// Whether both rows have the same cell and the same score.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.cell == other.cell && self.score.total_cmp(&other.score).is_eq()
    }
}

/// The distinct scores of both arms, as nodes in ascending order, cell after cell.
pub(crate) struct Meeting {
    score: Vec<f64>,
    cell: Vec<u32>,
    /// Rows of the takers and of the donors, node after node, ascending in each node.
    rows: [Vec<u32>; 2],
    /// For each arm, the index in `rows` of the first row of each node, and the number of rows.
    starts: [Vec<u32>; 2],
    /// For each arm, the index in `rows` of the first free row of each node.
    next: [Vec<u32>; 2],
    /// The nodes with free rows before and after each node.
    before: Vec<u32>,
    after: Vec<u32>,
}

impl Meeting {
    /// Arranges the takers and the donors, which are sorted by cell, score and row.
    pub fn new(arms: [Vec<SortedRow>; 2]) -> Self {
        let (mut score, mut cell) = (Vec::new(), Vec::new());
        let mut starts = [Vec::new(), Vec::new()];
        let mut place = [0; 2];
        loop {
            let first = |arm: usize| arms[arm].get(place[arm]);
            let smallest = match (first(TAKERS), first(DONORS)) {
                (None, None) => break,
                (Some(&only), None) | (None, Some(&only)) => only,
                (Some(&taker), Some(&donor)) => {
                    let scores = || taker.score.total_cmp(&donor.score);
                    if taker.cell.cmp(&donor.cell).then_with(scores).is_lt() {
                        taker
                    } else {
                        donor
                    }
                }
            };
            score.push(smallest.score);
            cell.push(smallest.cell);
            for (arm, place) in place.iter_mut().enumerate() {
                starts[arm].push(to_u32(*place));
                let rest = arms[arm][*place..].iter();
                *place += rest.take_while(|row| row.is_beside(&smallest)).count();
            }
        }
        for (starts, arm) in starts.iter_mut().zip(&arms) {
            starts.push(to_u32(arm.len()));
        }
        let nodes = score.len();
        Self {
            score,
            cell,
            rows: arms.map(|arm| arm.into_iter().map(|sorted| sorted.row).collect()),
            next: starts.clone(),
            starts,
            before: vec![END; nodes],
            after: vec![END; nodes],
        }
    }

    /// Gives each taker at most one free donor within the caliper, the closest pair first, and adds
    /// the pairs.
    pub fn pass(&mut self, caliper: f64, pairs: &mut Vec<(u32, u32)>) {
        self.next[TAKERS].clone_from(&self.starts[TAKERS]);
        for node in 0..self.score.len() {
            while let (Some(taker), Some(donor)) =
                (self.first(TAKERS, node), self.first(DONORS, node))
            {
                pairs.push((taker, donor));
                self.next[TAKERS][node] += 1;
                self.next[DONORS][node] += 1;
            }
        }
        self.link();
        let nodes = 0..to_u32(self.score.len());
        let mut candidates: BinaryHeap<Candidate> = nodes
            .filter_map(|node| self.candidate(node, caliper))
            .collect();
        while let Some(candidate) = candidates.pop() {
            let Reverse((_, taker, donor, left)) = candidate;
            // A candidate is out of date if one of its rows has been matched.
            if self.candidate(left, caliper) != Some(candidate) {
                continue;
            }
            pairs.push((taker, donor));
            let right = self.after[left as usize];
            let before = self.before[left as usize];
            for node in [left, right] {
                let arm = usize::from(self.first(TAKERS, node as usize).is_none());
                self.next[arm][node as usize] += 1;
                if self.first(arm, node as usize).is_none() {
                    self.unlink(node as usize);
                }
            }
            let changed = [before, left, right].into_iter();
            let changed = changed.filter(|&node| node != END);
            candidates.extend(changed.filter_map(|node| self.candidate(node, caliper)));
        }
    }

    /// Returns the first free row of an arm in a node.
    fn first(&self, arm: usize, node: usize) -> Option<u32> {
        let index = self.next[arm][node];
        (index < self.starts[arm][node + 1]).then(|| self.rows[arm][index as usize])
    }

    /// Links the nodes with free rows, each of which has rows of only one arm.
    fn link(&mut self) {
        let mut last = END;
        for node in 0..to_u32(self.score.len()) {
            let index = node as usize;
            if self.first(TAKERS, index).is_none() && self.first(DONORS, index).is_none() {
                continue;
            }
            self.before[index] = last;
            self.after[index] = END;
            if last != END {
                self.after[last as usize] = node;
            }
            last = node;
        }
    }

    fn unlink(&mut self, node: usize) {
        let (before, after) = (self.before[node], self.after[node]);
        if before != END {
            self.after[before as usize] = after;
        }
        if after != END {
            self.before[after as usize] = before;
        }
    }

    /// Returns the pair of the first rows of a node and of the next node, if they are of different
    /// arms, of one cell and within the caliper.
    fn candidate(&self, left: u32, caliper: f64) -> Option<Candidate> {
        let node = left as usize;
        let right = self.after[node];
        if right == END || self.cell[node] != self.cell[right as usize] {
            return None;
        }
        let right = right as usize;
        let distance = self.score[right] - self.score[node];
        let rows = |takers: usize, donors: usize| {
            Some((self.first(TAKERS, takers)?, self.first(DONORS, donors)?))
        };
        let (taker, donor) = rows(node, right).or_else(|| rows(right, node))?;
        (distance <= caliper).then_some(Reverse((distance.to_bits(), taker, donor, left)))
    }
}
