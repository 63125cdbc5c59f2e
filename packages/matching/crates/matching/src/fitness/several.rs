//! Finds the neighbours of points if a point may need several neighbours: the nearest points with
//! the needed weight, and the points that tie with the last of these.

use crate::fitness::blocks::{Blocks, QUERIES};
use crate::fitness::nearest::Search;
use crate::fitness::scan::{PairVisitor, scan};
use crate::problem::to_u32;

/// Amount that is subtracted from the needed weight for the rounding errors of sums.
const WEIGHT_ROUNDING: f64 = 1e-10;

/// The memory of a search for several neighbours of each point.
#[derive(Default)]
pub struct SeveralNearest {
    /// Neighbours of each query of a group.
    neighbours: [QueryNeighbours; QUERIES],
    queries: Vec<f32>,
    /// Indices of the neighbours of one query.
    points: Vec<u32>,
}

impl SeveralNearest {
    /// Reports the neighbours of each point of `arm`. With `drops_incomplete`, a point with too few
    /// neighbours is skipped.
    pub fn search(
        &mut self,
        search: &Search<'_>,
        arm: bool,
        needed_weight: usize,
        drops_incomplete: bool,
        report: &mut dyn FnMut(usize, &[u32]),
    ) {
        let (query_points, target_points) = (search.units.arm(arm), search.units.arm(!arm));
        let query_blocks = &search.arms[usize::from(arm)];
        let target_blocks = &search.arms[usize::from(!arm)];
        let targets = &search.stretched[usize::from(!arm)];
        for first_query in query_points.clone().step_by(QUERIES) {
            let count = QUERIES.min(query_points.end - first_query);
            let start = first_query - query_points.start;
            query_blocks.write_queries(start..start + count, search.scale, &mut self.queries);
            for neighbours in &mut self.neighbours {
                neighbours.start(needed_weight as f64 - WEIGHT_ROUNDING, search.tolerance);
            }
            let mut visitor = SeveralVisitor {
                search,
                query_blocks,
                target_blocks,
                first_query,
                query_start: query_points.start,
                target_start: target_points.start,
                reach: [f32::INFINITY; QUERIES],
                neighbours: &mut self.neighbours,
            };
            scan::<_, false>(search.instructions, targets, &self.queries, &mut visitor);
            for (query, neighbours) in self.neighbours[..count].iter_mut().enumerate() {
                if neighbours.finish() || !drops_incomplete {
                    self.points.clear();
                    self.points
                        .extend(neighbours.points.iter().map(|&(_, other)| other));
                    report(first_query + query, &self.points);
                }
            }
        }
    }
}

/// Collects the neighbours of one group of queries. The fields are as in `NearestVisitor`.
struct SeveralVisitor<'a> {
    search: &'a Search<'a>,
    query_blocks: &'a Blocks,
    target_blocks: &'a Blocks,
    first_query: usize,
    query_start: usize,
    target_start: usize,
    reach: [f32; QUERIES],
    neighbours: &'a mut [QueryNeighbours; QUERIES],
}

impl PairVisitor for SeveralVisitor<'_> {
    fn reach(&self) -> &[f32; QUERIES] {
        &self.reach
    }

    fn visit(&mut self, query: usize, point: usize) {
        let source = self.first_query + query;
        let target = self.target_start + point;
        let source_point = self.query_blocks.point(source - self.query_start);
        let target_point = self.target_blocks.point(point);
        let scale = self.search.scale;
        let squared = scale.squared_distance(source_point, target_point);
        let neighbours = &mut self.neighbours[query];
        if squared > neighbours.reach() || !self.search.calipers.admit(source, target) {
            return;
        }
        neighbours.add(squared, target, self.search.units.weights[target]);
        self.reach[query] = self.search.scale.reach(neighbours.reach());
    }
}

/// The neighbours of one query that are known so far.
#[derive(Default)]
struct QueryNeighbours {
    /// Squared distance and index of each neighbour.
    points: Vec<(f64, u32)>,
    /// Squared distance and weight of the nearest points with the needed weight, ascending.
    nearest: Vec<(f64, f64)>,
    /// Total weight of `nearest`.
    weight: f64,
    needed_weight: f64,
    tolerance: f64,
    /// Squared distance of the last needed neighbour.
    last_distance: f64,
}

impl QueryNeighbours {
    fn start(&mut self, needed_weight: f64, tolerance: f64) {
        self.points.clear();
        self.nearest.clear();
        self.weight = 0.0;
        self.needed_weight = needed_weight;
        self.tolerance = tolerance;
        self.last_distance = f64::INFINITY;
    }

    /// Returns the largest squared distance that a neighbour can still have.
    fn reach(&self) -> f64 {
        self.last_distance + self.tolerance
    }

    /// Adds a neighbour, and drops the furthest points that the weight no longer needs.
    fn add(&mut self, squared: f64, point: usize, weight: f64) {
        self.points.push((squared, to_u32(point)));
        if squared >= self.last_distance {
            return;
        }
        let position = self.nearest.partition_point(|&(near, _)| near <= squared);
        self.nearest.insert(position, (squared, weight));
        self.weight += weight;
        while let Some(&(_, furthest)) = self.nearest.last() {
            if self.weight - furthest < self.needed_weight {
                break;
            }
            self.weight -= furthest;
            self.nearest.pop();
        }
        if self.weight >= self.needed_weight {
            let last = self.nearest.last();
            self.last_distance = last.map_or(self.last_distance, |&(squared, _)| squared);
        }
    }

    /// Keeps the needed neighbours and their ties; returns whether they have the needed weight.
    fn finish(&mut self) -> bool {
        let reach = self.reach();
        self.points.retain(|&(squared, _)| squared <= reach);
        self.weight >= self.needed_weight
    }
}
