//! The nearest neighbours of all points at once, if one neighbour is enough for every point.
//!
//! Each pair of points is examined once, for both points if both are matched.

use crate::fitness::blocks::{Axes, Blocks, LANES, Stretched, TOGETHER};
use crate::fitness::scan::{Hits, scan};
use crate::fitness::units::{Calipers, Units};
use crate::instructions::Instructions;
use crate::problem::small;

/// No more pairs than this, or this many times the points, are held at once.
const MIN_LIMIT: usize = 1 << 20;
const MAX_HITS_OF_EACH: usize = 16;
/// No guess of a neighbour.
pub const NOBODY: u32 = u32::MAX;

/// The nearest points, and the memory for finding them.
#[derive(Default)]
pub struct Nearest {
    /// For each point a neighbour, which bounds the next search.
    pub guess: Vec<u32>,
    /// Squared distance of the nearest of each point.
    best: Vec<f64>,
    hits: Vec<(u32, u32, f64)>,
    starts: Vec<u32>,
    ordered: Vec<u32>,
    of_blocks: Vec<[f32; LANES]>,
    of_batches: Vec<[f32; LANES]>,
    queries: Vec<f32>,
}

/// The points to search, and the distance to search by.
pub struct Search<'a> {
    /// The points.
    pub units: &'a Units,
    /// The controls and the treated.
    pub arms: &'a [Blocks; 2],
    /// Blocks of the arms that are searched, stretched by the candidate.
    pub stretched: &'a [Stretched; 2],
    /// The candidate's scale of each column.
    pub axes: &'a Axes,
    /// Limits on the pairs.
    pub calipers: &'a Calipers,
    /// Squared distances that differ by no more are ties.
    pub tolerance: f64,
    /// Instructions of the processor.
    pub instructions: Instructions,
}

impl Nearest {
    /// The neighbours of a point after a search.
    pub fn of(&self, point: usize) -> &[u32] {
        &self.ordered[self.starts[point] as usize..self.starts[point + 1] as usize]
    }

    /// Searches for the arm's points, or with `BOTH` for everybody; false if there are more ties
    /// than can be held.
    pub fn search<const BOTH: bool>(&mut self, search: &Search<'_>, arm: bool) -> bool {
        let units = search.units;
        let (rows, columns) = (units.arm(arm), units.arm(!arm));
        let blocks = &search.arms[usize::from(arm)];
        let others = &search.arms[usize::from(!arm)];
        let targets = &search.stretched[usize::from(!arm)];
        self.hits.clear();
        self.best.clear();
        let of = |point: usize| {
            if rows.contains(&point) {
                blocks.of(point - rows.start)
            } else {
                others.of(point - columns.start)
            }
        };
        for (point, &guess) in self.guess.iter().enumerate() {
            self.best.push(if guess == NOBODY {
                f64::INFINITY
            } else {
                search.axes.squared(of(point), of(guess as usize))
            });
        }
        self.of_blocks.clear();
        if BOTH {
            let blocks = columns.len().div_ceil(LANES);
            self.of_blocks.resize(blocks, [-1.0; LANES]);
            for (place, &best) in self.best[columns.clone()].iter().enumerate() {
                self.of_blocks[place / LANES][place % LANES] =
                    search.axes.reach(best + search.tolerance);
            }
            self.of_batches.clear();
            self.of_batches
                .resize(blocks.div_ceil(LANES), [-1.0; LANES]);
            for (block, reaches) in self.of_blocks.iter().enumerate() {
                self.of_batches[block / LANES][block % LANES] = furthest(reaches);
            }
        }
        let limit = MIN_LIMIT.max(units.points() * MAX_HITS_OF_EACH);
        for first in rows.clone().step_by(TOGETHER) {
            let count = TOGETHER.min(rows.end - first);
            let place = first - rows.start;
            blocks.queries(place..place + count, search.axes, &mut self.queries);
            let mut reach = [-1.0; TOGETHER];
            for (reach, &best) in reach.iter_mut().zip(&self.best[first..first + count]) {
                *reach = search.axes.reach(best + search.tolerance);
            }
            let mut heard = Heard::<BOTH> {
                search,
                blocks,
                others,
                first,
                rows: rows.start,
                columns: columns.start,
                reach,
                best: &mut self.best,
                guess: &mut self.guess,
                hits: &mut self.hits,
                of_blocks: &mut self.of_blocks,
                of_batches: &mut self.of_batches,
            };
            scan::<_, BOTH>(search.instructions, targets, &self.queries, &mut heard);
            if self.hits.len() > limit {
                return false;
            }
        }
        self.order(search.tolerance);
        true
    }

    /// Groups the hits of each point, and drops those that are too far.
    fn order(&mut self, tolerance: f64) {
        let best = &self.best;
        self.hits
            .retain(|&(point, _, squared)| squared <= best[point as usize] + tolerance);
        self.starts.clear();
        self.starts.resize(best.len() + 1, 0);
        for &(point, _, _) in &self.hits {
            self.starts[point as usize + 1] += 1;
        }
        for point in 0..best.len() {
            self.starts[point + 1] += self.starts[point];
        }
        self.ordered.clear();
        self.ordered.resize(self.hits.len(), 0);
        // Each start moves to the end of its points, which is the start of the next point's.
        for &(point, other, _) in &self.hits {
            let place = &mut self.starts[point as usize];
            self.ordered[*place as usize] = other;
            *place += 1;
        }
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }
}

struct Heard<'a, const BOTH: bool> {
    search: &'a Search<'a>,
    blocks: &'a Blocks,
    others: &'a Blocks,
    first: usize,
    rows: usize,
    columns: usize,
    reach: [f32; TOGETHER],
    best: &'a mut [f64],
    guess: &'a mut [u32],
    hits: &'a mut Vec<(u32, u32, f64)>,
    of_blocks: &'a mut [[f32; LANES]],
    of_batches: &'a mut [[f32; LANES]],
}

impl<const BOTH: bool> Hits for Heard<'_, BOTH> {
    #[inline]
    fn reach(&self) -> &[f32; TOGETHER] {
        &self.reach
    }

    #[inline]
    fn reach_of_block(&self, block: usize) -> &[f32; LANES] {
        &self.of_blocks[block]
    }

    #[inline]
    fn reach_of_batch(&self, batch: usize) -> &[f32; LANES] {
        &self.of_batches[batch]
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // It is the inner loop, and gets its caller's instructions.
    fn hit(&mut self, query: usize, point: usize) {
        let row = self.first + query;
        let other = self.columns + point;
        let squared = self
            .search
            .axes
            .squared(self.blocks.of(row - self.rows), self.others.of(point));
        let tolerance = self.search.tolerance;
        let near_row = squared <= self.best[row] + tolerance;
        let near_other = BOTH && squared <= self.best[other] + tolerance;
        if !(near_row || near_other) || !self.search.calipers.admit(row, other) {
            return;
        }
        if near_row {
            self.hits.push((small(row), small(other), squared));
            if squared < self.best[row] {
                self.best[row] = squared;
                self.guess[row] = small(other);
                self.reach[query] = self.search.axes.reach(squared + tolerance);
            }
        }
        if near_other {
            self.hits.push((small(other), small(row), squared));
            if squared < self.best[other] {
                self.best[other] = squared;
                self.guess[other] = small(row);
                let block = point / LANES;
                let reaches = &mut self.of_blocks[block];
                reaches[point % LANES] = self.search.axes.reach(squared + tolerance);
                self.of_batches[block / LANES][block % LANES] = furthest(reaches);
            }
        }
    }
}

/// The furthest reach.
#[inline]
fn furthest(reaches: &[f32; LANES]) -> f32 {
    reaches.iter().copied().fold(-1.0, f32::max)
}
