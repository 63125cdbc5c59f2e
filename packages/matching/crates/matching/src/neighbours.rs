//! The nearest neighbours of one point during a search, with all neighbours that tie.

use std::collections::BinaryHeap;

use crate::instructions::LANES;
use crate::pool::Pool;
use crate::problem::to_u32;

/// Number of neighbours, kept and dropped again, for which a search has memory at its start.
const USUAL_NEIGHBOURS: usize = 16;

/// A search for the neighbours of one point.
pub struct Query<'a> {
    /// Index of the point whose neighbours are wanted.
    pub point: usize,
    pub coordinates: &'a [f64],
    /// For each column with a caliper: the value of the point, and the caliper.
    pub calipers: Vec<(f64, f64)>,
    /// Total weight of the neighbours to find; with weights of 1, the number of neighbours.
    pub needed_weight: f64,
    /// Largest difference between the squared distances of the last needed neighbour and of a tie.
    pub tolerance: f64,
    /// Points with a given squared distance.
    pub fixed_distances: Vec<(usize, f64)>,
    /// Points that must not be neighbours.
    pub forbidden: Vec<usize>,
}

/// Function that returns the weight of a point (second argument) as a neighbour of the query's
/// point (first argument); `None` if the point must not be a neighbour.
pub type WeightOf<'a> = dyn Fn(usize, usize) -> Option<f64> + Sync + 'a;

/// The neighbours of one point, and the state of the search for them.
#[derive(Default)]
pub struct SearchResult {
    /// Squared distance and point of each neighbour.
    pub neighbours: Vec<(f64, u32)>,
    /// Squared distance of the last needed neighbour.
    pub last_distance: f64,
    /// Whether the neighbours have the needed weight.
    pub has_enough: bool,
    pub searched_blocks: usize,
    pub searched_nodes: usize,
    /// A neighbour that has the needed weight alone; `None` if all of `nearest` are needed.
    single: Option<NearPoint>,
    /// The nearest points that are needed for the weight, the furthest first.
    nearest: BinaryHeap<NearPoint>,
    /// Total weight of `single` and `nearest`.
    weight: f64,
    /// As in the query.
    needed_weight: f64,
    /// As in the query.
    tolerance: f64,
}

#[derive(PartialEq)]
struct NearPoint {
    squared: f64,
    weight: f64,
}

impl Eq for NearPoint {}

impl PartialOrd for NearPoint {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NearPoint {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.squared
            .total_cmp(&other.squared)
            .then(self.weight.total_cmp(&other.weight))
    }
}

impl SearchResult {
    pub fn start(&mut self, query: &Query<'_>, weight_of: &WeightOf<'_>) {
        self.neighbours.clear();
        self.neighbours.reserve(USUAL_NEIGHBOURS);
        self.single = None;
        self.nearest.clear();
        self.weight = 0.0;
        self.searched_blocks = 0;
        self.searched_nodes = 0;
        self.needed_weight = query.needed_weight;
        self.tolerance = query.tolerance;
        self.last_distance = f64::INFINITY;
        for &(point, squared) in &query.fixed_distances {
            if let Some(weight) = weight_of(query.point, point) {
                self.add(squared, point, weight);
            }
        }
    }

    /// Returns the largest squared distance that a neighbour can still have.
    pub fn reach(&self) -> f64 {
        self.last_distance + self.tolerance
    }

    /// Adds the points of a block that are marked in `near` and may be neighbours.
    #[inline(never)] // The call is rare, and inlined code would use the caller's registers.
    pub fn add_block(
        &mut self,
        pool: &Pool,
        query: &Query<'_>,
        weight_of: &WeightOf<'_>,
        block: usize,
        (squared, mut near): (&[f64; LANES], u32),
    ) {
        let fixed = &query.fixed_distances;
        // The nearest point is added first, because most other points are then out of reach.
        let mut lane = nearest_lane(squared, near);
        while near != 0 {
            near &= !(1 << lane);
            let (point, distance) = (block * LANES + lane, squared[lane]);
            lane = near.trailing_zeros() as usize;
            if point >= pool.point_count
                || distance > self.reach()
                || distance == f64::INFINITY
                || query.forbidden.contains(&point)
                || fixed.iter().any(|&(other, _)| other == point)
            {
                continue;
            }
            if let Some(weight) = weight_of(query.point, point) {
                self.add(distance, point, weight);
            }
        }
    }

    /// Ends the search. Keeps the neighbours within reach, in the order of the pool.
    pub fn finish(&mut self) {
        self.has_enough = self.weight >= self.needed_weight;
        if !self.has_enough {
            self.last_distance = self.furthest();
        }
        let reach = self.reach();
        self.neighbours.retain(|&(squared, _)| squared <= reach);
        // Results must not depend on the order of the search.
        self.neighbours.sort_unstable_by_key(|&(_, point)| point);
    }

    fn furthest(&self) -> f64 {
        let furthest = self.single.as_ref().or_else(|| self.nearest.peek());
        furthest.map_or(f64::INFINITY, |near| near.squared)
    }

    fn add(&mut self, squared: f64, point: usize, weight: f64) {
        self.neighbours.push((squared, to_u32(point)));
        if squared >= self.last_distance {
            return;
        }
        if weight >= self.needed_weight && self.nearest.is_empty() {
            self.single = Some(NearPoint { squared, weight });
            self.weight = weight;
            self.last_distance = squared;
            return;
        }
        self.nearest.extend(self.single.take());
        self.nearest.push(NearPoint { squared, weight });
        self.weight += weight;
        while let Some(furthest) = self.nearest.peek() {
            if self.weight - furthest.weight < self.needed_weight {
                break;
            }
            self.weight -= furthest.weight;
            self.nearest.pop();
        }
        if self.weight >= self.needed_weight {
            self.last_distance = self.furthest();
        }
    }
}

/// Returns the lane with the smallest squared distance among the lanes that are marked in `near`.
fn nearest_lane(squared: &[f64; LANES], near: u32) -> usize {
    let mut nearest = near.trailing_zeros() as usize;
    let mut rest = near & (near - 1);
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        if squared[lane] < squared[nearest] {
            nearest = lane;
        }
    }
    nearest
}
