//! The nearest neighbours of one point so far, with all that tie.

use std::collections::BinaryHeap;

use crate::instructions::LANES;
use crate::pool::Pool;
use crate::problem::small;

/// A search for the neighbours of one point.
pub struct Query<'a> {
    /// The querying point, in the form of `Admitted`.
    pub number: usize,
    /// The coordinates.
    pub point: &'a [f64],
    /// The values in the fenced columns, and how far a neighbour's may be from them.
    pub fence: Vec<(f64, f64)>,
    /// Weight of the nearest neighbours to find (their number, if all weigh 1).
    pub needed: f64,
    /// Squared distance beyond the last needed neighbour that still counts as a tie.
    pub slack: f64,
    /// Points with a fixed squared distance.
    pub fixed: Vec<(usize, f64)>,
    /// Points that are not admitted.
    pub forbidden: Vec<usize>,
}

/// Weight of a point of the pool for the querying point; `None` if it is not admitted.
pub type Admitted<'a> = dyn Fn(usize, usize) -> Option<f64> + Sync + 'a;

/// The neighbours of one point, and the memory for finding them.
#[derive(Default)]
pub struct SearchResult {
    /// Squared distance and point of each neighbour.
    pub neighbours: Vec<(f64, u32)>,
    /// The squared distance of the last that was needed.
    pub last: f64,
    /// Whether there were enough neighbours.
    pub enough: bool,
    /// Number of blocks that were searched.
    pub blocks: usize,
    /// Number of nodes of the tree that were searched.
    pub nodes: usize,
    /// A neighbour that suffices alone; without it, all of `nearest` are needed.
    alone: Option<Near>,
    nearest: BinaryHeap<Near>,
    weight: f64,
    needed: f64,
    slack: f64,
}

#[derive(PartialEq)]
struct Near {
    squared: f64,
    weight: f64,
}

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.squared
            .total_cmp(&other.squared)
            .then(self.weight.total_cmp(&other.weight))
    }
}

impl SearchResult {
    /// Begins the search of another query.
    pub fn begin(&mut self, query: &Query<'_>, admitted: &Admitted<'_>) {
        self.neighbours.clear();
        self.alone = None;
        self.nearest.clear();
        self.weight = 0.0;
        self.blocks = 0;
        self.nodes = 0;
        self.needed = query.needed;
        self.slack = query.slack;
        self.last = f64::INFINITY;
        for &(point, squared) in &query.fixed {
            if let Some(weight) = admitted(query.number, point) {
                self.take(squared, point, weight);
            }
        }
    }

    /// No neighbour is further, as far as is known.
    pub fn reach(&self) -> f64 {
        self.last + self.slack
    }

    /// Takes the points of a block that are marked in `near` and admitted.
    #[inline(never)] // Rare, and the caller needs its registers.
    pub fn consider(
        &mut self,
        pool: &Pool,
        query: &Query<'_>,
        admitted: &Admitted<'_>,
        block: usize,
        (squared, mut near): (&[f64; LANES], u32),
    ) {
        // The nearest first: most of the others are then out of reach.
        let mut lane = nearest_of(squared, near);
        while near != 0 {
            near &= !(1 << lane);
            let (point, distance) = (block * LANES + lane, squared[lane]);
            lane = near.trailing_zeros() as usize;
            if point >= pool.points
                || distance > self.reach()
                || distance == f64::INFINITY
                || query.forbidden.contains(&point)
                || query.fixed.iter().any(|&(other, _)| other == point)
            {
                continue;
            }
            if let Some(weight) = admitted(query.number, point) {
                self.take(distance, point, weight);
            }
        }
    }

    /// Leaves the neighbours within reach, in the order of the pool.
    pub fn end(&mut self) {
        self.enough = self.weight >= self.needed;
        if !self.enough {
            self.last = self.furthest();
        }
        let reach = self.reach();
        self.neighbours.retain(|&(squared, _)| squared <= reach);
        // Results must not depend on the order of the search.
        self.neighbours.sort_unstable_by_key(|&(_, point)| point);
    }

    fn furthest(&self) -> f64 {
        let furthest = self.alone.as_ref().or_else(|| self.nearest.peek());
        furthest.map_or(f64::INFINITY, |near| near.squared)
    }

    fn take(&mut self, squared: f64, point: usize, weight: f64) {
        self.neighbours.push((squared, small(point)));
        if squared >= self.last {
            return;
        }
        if weight >= self.needed && self.nearest.is_empty() {
            self.alone = Some(Near { squared, weight });
            self.weight = weight;
            self.last = squared;
            return;
        }
        self.nearest.extend(self.alone.take());
        self.nearest.push(Near { squared, weight });
        self.weight += weight;
        while let Some(furthest) = self.nearest.peek() {
            if self.weight - furthest.weight < self.needed {
                break;
            }
            self.weight -= furthest.weight;
            self.nearest.pop();
        }
        if self.weight >= self.needed {
            self.last = self.furthest();
        }
    }
}

fn nearest_of(squared: &[f64; LANES], near: u32) -> usize {
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
