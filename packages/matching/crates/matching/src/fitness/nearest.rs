//! Finds the nearest neighbours of all points together, if one neighbour is enough for every point.
//!
//! Each pair of points is examined once, even if both arms are matched. The radius of a point is
//! the squared distance to its nearest known neighbour. The reach is a little larger: the largest
//! squared distance of a neighbour in single precision, with ties and rounding errors.

use crate::fitness::blocks::{Blocks, ColumnScale, LANES, QUERIES, StretchedPoints};
use crate::fitness::scan::{PairVisitor, scan};
use crate::fitness::units::{Calipers, Units};
use crate::instructions::Instructions;
use crate::problem::to_u32;

/// Smallest limit of the number of pairs that the search keeps.
const MIN_PAIR_LIMIT: usize = 1 << 20;
/// Limit of the pairs for each point, if this allows more than `MIN_PAIR_LIMIT` pairs in total.
const MAX_PAIRS_PER_POINT: usize = 16;
/// Index for an unknown neighbour.
pub const NO_GUESS: u32 = u32::MAX;

/// The nearest points, and the state of the search for them.
#[derive(Default)]
pub struct Nearest {
    /// A neighbour of each point, whose distance limits the next search.
    pub guess: Vec<u32>,
    /// Squared distance of each point to its nearest known neighbour.
    radii: Vec<f64>,
    /// A point, its neighbour and their squared distance.
    pairs: Vec<(u32, u32, f64)>,
    /// Index in `neighbours` of the first neighbour of each point.
    starts: Vec<u32>,
    /// Neighbours of the points, point after point.
    neighbours: Vec<u32>,
    /// Reach of each point of a block, for a search both ways.
    block_reaches: Vec<[f32; LANES]>,
    /// Largest reach of each block of a batch, for a search both ways.
    batch_reaches: Vec<[f32; LANES]>,
    /// Coordinates of the queries of one group.
    queries: Vec<f32>,
}

/// The points to search, and the measure of distance.
pub struct Search<'a> {
    pub units: &'a Units,
    /// Blocks of the controls and of the treated.
    pub arms: &'a [Blocks; 2],
    /// Points of both arms, stretched by the candidate, if they are searched.
    pub stretched: &'a [StretchedPoints; 2],
    /// The factors by which the candidate stretches the columns.
    pub scale: &'a ColumnScale,
    /// Calipers that a pair must meet.
    pub calipers: &'a Calipers,
    /// Squared distances that differ by at most this are ties.
    pub tolerance: f64,
    pub instructions: Instructions,
}

impl Nearest {
    pub fn neighbours_of(&self, point: usize) -> &[u32] {
        &self.neighbours[self.starts[point] as usize..self.starts[point + 1] as usize]
    }

    /// Searches the neighbours of the points of `arm`, or with `BOTH_WAYS` of all points. Returns
    /// false if there are more ties than the search can keep. The guesses give each point a first
    /// radius. Each group of queries is then compared with all points of the other arm, and nearer
    /// points shrink the radii.
    pub fn search<const BOTH_WAYS: bool>(&mut self, search: &Search<'_>, arm: bool) -> bool {
        let units = search.units;
        let (query_points, target_points) = (units.arm(arm), units.arm(!arm));
        let query_blocks = &search.arms[usize::from(arm)];
        let target_blocks = &search.arms[usize::from(!arm)];
        let targets = &search.stretched[usize::from(!arm)];
        self.pairs.clear();
        self.radii.clear();
        let values = |point: usize| {
            if query_points.contains(&point) {
                query_blocks.point(point - query_points.start)
            } else {
                target_blocks.point(point - target_points.start)
            }
        };
        for (point, &guess) in self.guess.iter().enumerate() {
            self.radii.push(if guess == NO_GUESS {
                f64::INFINITY
            } else {
                search
                    .scale
                    .squared_distance(values(point), values(guess as usize))
            });
        }
        self.block_reaches.clear();
        if BOTH_WAYS {
            let blocks = target_points.len().div_ceil(LANES);
            self.block_reaches.resize(blocks, [-1.0; LANES]);
            for (index, &radius) in self.radii[target_points.clone()].iter().enumerate() {
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
        for first_query in query_points.clone().step_by(QUERIES) {
            let count = QUERIES.min(query_points.end - first_query);
            let start = first_query - query_points.start;
            query_blocks.write_queries(start..start + count, search.scale, &mut self.queries);
            let mut reach = [-1.0; QUERIES];
            let radii = &self.radii[first_query..first_query + count];
            for (reach, &radius) in reach.iter_mut().zip(radii) {
                *reach = search.scale.reach(radius + search.tolerance);
            }
            let mut visitor = NearestVisitor::<BOTH_WAYS> {
                search,
                query_blocks,
                target_blocks,
                first_query,
                query_start: query_points.start,
                target_start: target_points.start,
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
        // Each start moves to the end of its neighbours, the start of the next point.
        for &(point, other, _) in &self.pairs {
            let start = &mut self.starts[point as usize];
            self.neighbours[*start as usize] = other;
            *start += 1;
        }
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }
}

/// Collects the pairs of one group of queries and all points of the other arm.
struct NearestVisitor<'a, const BOTH_WAYS: bool> {
    search: &'a Search<'a>,
    query_blocks: &'a Blocks,
    target_blocks: &'a Blocks,
    /// Index of the first query of the group.
    first_query: usize,
    /// Index of the first point of the queries' arm.
    query_start: usize,
    /// Index of the first point of the other arm.
    target_start: usize,
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
        let source = self.first_query + query;
        let target = self.target_start + point;
        let source_point = self.query_blocks.point(source - self.query_start);
        let target_point = self.target_blocks.point(point);
        let scale = self.search.scale;
        let squared = scale.squared_distance(source_point, target_point);
        let tolerance = self.search.tolerance;
        let is_near_source = squared <= self.radii[source] + tolerance;
        let is_near_target = BOTH_WAYS && squared <= self.radii[target] + tolerance;
        if !(is_near_source || is_near_target) || !self.search.calipers.admit(source, target) {
            return;
        }
        if is_near_source {
            self.pairs.push((to_u32(source), to_u32(target), squared));
            if squared < self.radii[source] {
                self.radii[source] = squared;
                self.guess[source] = to_u32(target);
                self.reach[query] = self.search.scale.reach(squared + tolerance);
            }
        }
        if is_near_target {
            self.pairs.push((to_u32(target), to_u32(source), squared));
            if squared < self.radii[target] {
                self.radii[target] = squared;
                self.guess[target] = to_u32(source);
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
