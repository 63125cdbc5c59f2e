//! Finds the nearest neighbours of all points together, if one neighbour is enough for every point.
//!
//! Each pair of points is examined once: for both points, if both arms are matched.

use crate::fitness::blocks::{Blocks, CandidateScale, LANES, QUERIES, StretchedPoints};
use crate::fitness::scan::{PairVisitor, scan};
use crate::fitness::units::{Calipers, Units};
use crate::instructions::Instructions;
use crate::problem::to_u32;

/// The search keeps at most this many pairs, or the number below for each point if that is more.
const MIN_PAIR_LIMIT: usize = 1 << 20;
const MAX_PAIRS_PER_POINT: usize = 16;
/// Stands for a neighbour that is not known.
pub const NO_GUESS: u32 = u32::MAX;

/// The nearest points, and the state of the search for them.
#[derive(Default)]
pub struct Nearest {
    /// A neighbour of each point, whose distance limits the next search.
    pub guess: Vec<u32>,
    /// Squared distance of each point to its nearest known neighbour.
    radii: Vec<f64>,
    pairs: Vec<(u32, u32, f64)>,
    starts: Vec<u32>,
    neighbours: Vec<u32>,
    block_reaches: Vec<[f32; LANES]>,
    batch_reaches: Vec<[f32; LANES]>,
    queries: Vec<f32>,
}

/// The points to search, and the distance to search by.
pub struct Search<'a> {
    /// The points.
    pub units: &'a Units,
    /// Blocks of the controls and of the treated.
    pub arms: &'a [Blocks; 2],
    /// Points of both arms, stretched by the candidate, if they are searched.
    pub stretched: &'a [StretchedPoints; 2],
    /// The factors by which the candidate stretches the columns.
    pub scale: &'a CandidateScale,
    /// Calipers that a pair must meet.
    pub calipers: &'a Calipers,
    /// Squared distances that differ by at most this are ties.
    pub tolerance: f64,
    /// Instructions of the processor.
    pub instructions: Instructions,
}

impl Nearest {
    /// Returns the neighbours of a point after a search.
    pub fn neighbours_of(&self, point: usize) -> &[u32] {
        &self.neighbours[self.starts[point] as usize..self.starts[point + 1] as usize]
    }

    /// Searches the neighbours of the points of `arm`, or with `BOTH_WAYS` of all points. Returns
    /// false if there are more ties than the search can keep.
    pub fn search<const BOTH_WAYS: bool>(&mut self, search: &Search<'_>, arm: bool) -> bool {
        let units = search.units;
        let (rows, columns) = (units.arm(arm), units.arm(!arm));
        let blocks = &search.arms[usize::from(arm)];
        let others = &search.arms[usize::from(!arm)];
        let targets = &search.stretched[usize::from(!arm)];
        self.pairs.clear();
        self.radii.clear();
        let values = |point: usize| {
            if rows.contains(&point) {
                blocks.point(point - rows.start)
            } else {
                others.point(point - columns.start)
            }
        };
        for (point, &guess) in self.guess.iter().enumerate() {
            self.radii.push(if guess == NO_GUESS {
                f64::INFINITY
            } else {
                search.scale.squared(values(point), values(guess as usize))
            });
        }
        self.block_reaches.clear();
        if BOTH_WAYS {
            let blocks = columns.len().div_ceil(LANES);
            self.block_reaches.resize(blocks, [-1.0; LANES]);
            for (index, &radius) in self.radii[columns.clone()].iter().enumerate() {
                self.block_reaches[index / LANES][index % LANES] =
                    search.scale.reach(radius + search.tolerance);
            }
            self.batch_reaches.clear();
            self.batch_reaches
                .resize(blocks.div_ceil(LANES), [-1.0; LANES]);
            for (block, reaches) in self.block_reaches.iter().enumerate() {
                self.batch_reaches[block / LANES][block % LANES] = largest_reach(reaches);
            }
        }
        let limit = MIN_PAIR_LIMIT.max(units.points() * MAX_PAIRS_PER_POINT);
        for first in rows.clone().step_by(QUERIES) {
            let count = QUERIES.min(rows.end - first);
            let start = first - rows.start;
            blocks.write_queries(start..start + count, search.scale, &mut self.queries);
            let mut reach = [-1.0; QUERIES];
            for (reach, &radius) in reach.iter_mut().zip(&self.radii[first..first + count]) {
                *reach = search.scale.reach(radius + search.tolerance);
            }
            let mut visitor = NearestVisitor::<BOTH_WAYS> {
                search,
                blocks,
                others,
                first,
                rows: rows.start,
                columns: columns.start,
                reach,
                radii: &mut self.radii,
                guess: &mut self.guess,
                pairs: &mut self.pairs,
                block_reaches: &mut self.block_reaches,
                batch_reaches: &mut self.batch_reaches,
            };
            scan::<_, BOTH_WAYS>(search.instructions, targets, &self.queries, &mut visitor);
            if self.pairs.len() > limit {
                return false;
            }
        }
        self.group_pairs(search.tolerance);
        true
    }

    /// Groups the pairs by their first point, and drops pairs that are too far apart.
    fn group_pairs(&mut self, tolerance: f64) {
        let radii = &self.radii;
        self.pairs
            .retain(|&(point, _, squared)| squared <= radii[point as usize] + tolerance);
        self.starts.clear();
        self.starts.resize(radii.len() + 1, 0);
        for &(point, _, _) in &self.pairs {
            self.starts[point as usize + 1] += 1;
        }
        for point in 0..radii.len() {
            self.starts[point + 1] += self.starts[point];
        }
        self.neighbours.clear();
        self.neighbours.resize(self.pairs.len(), 0);
        // Each start moves to the end of its points, which is the start of the next point's.
        for &(point, other, _) in &self.pairs {
            let start = &mut self.starts[point as usize];
            self.neighbours[*start as usize] = other;
            *start += 1;
        }
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }
}

struct NearestVisitor<'a, const BOTH_WAYS: bool> {
    search: &'a Search<'a>,
    blocks: &'a Blocks,
    others: &'a Blocks,
    first: usize,
    rows: usize,
    columns: usize,
    reach: [f32; QUERIES],
    radii: &'a mut [f64],
    guess: &'a mut [u32],
    pairs: &'a mut Vec<(u32, u32, f64)>,
    block_reaches: &'a mut [[f32; LANES]],
    batch_reaches: &'a mut [[f32; LANES]],
}

impl<const BOTH_WAYS: bool> PairVisitor for NearestVisitor<'_, BOTH_WAYS> {
    #[inline]
    fn reach(&self) -> &[f32; QUERIES] {
        &self.reach
    }

    #[inline]
    fn block_reach(&self, block: usize) -> &[f32; LANES] {
        &self.block_reaches[block]
    }

    #[inline]
    fn batch_reach(&self, batch: usize) -> &[f32; LANES] {
        &self.batch_reaches[batch]
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // It is the inner loop, and gets its caller's instructions.
    fn visit(&mut self, query: usize, point: usize) {
        let row = self.first + query;
        let other = self.columns + point;
        let squared = self
            .search
            .scale
            .squared(self.blocks.point(row - self.rows), self.others.point(point));
        let tolerance = self.search.tolerance;
        let is_near_row = squared <= self.radii[row] + tolerance;
        let is_near_other = BOTH_WAYS && squared <= self.radii[other] + tolerance;
        if !(is_near_row || is_near_other) || !self.search.calipers.admit(row, other) {
            return;
        }
        if is_near_row {
            self.pairs.push((to_u32(row), to_u32(other), squared));
            if squared < self.radii[row] {
                self.radii[row] = squared;
                self.guess[row] = to_u32(other);
                self.reach[query] = self.search.scale.reach(squared + tolerance);
            }
        }
        if is_near_other {
            self.pairs.push((to_u32(other), to_u32(row), squared));
            if squared < self.radii[other] {
                self.radii[other] = squared;
                self.guess[other] = to_u32(row);
                let block = point / LANES;
                let reaches = &mut self.block_reaches[block];
                reaches[point % LANES] = self.search.scale.reach(squared + tolerance);
                self.batch_reaches[block / LANES][block % LANES] = largest_reach(reaches);
            }
        }
    }
}

#[inline]
fn largest_reach(reaches: &[f32; LANES]) -> f32 {
    reaches.iter().copied().fold(-1.0, f32::max)
}
