//! The neighbours of queries one by one, if a query may need several points.

use crate::fitness::blocks::{Blocks, TOGETHER};
use crate::fitness::nearest::Search;
use crate::fitness::scan::{Hits, scan};
use crate::problem::small;

/// A little less than the weight that is needed: weights add up with rounding.
const ROUNDING: f64 = 1e-10;

/// The workspace for the search.
#[derive(Default)]
pub struct SeveralNearest {
    neighbours: [SearchResult; TOGETHER],
    queries: Vec<f32>,
    points: Vec<u32>,
}

impl SeveralNearest {
    /// Reports the neighbours of each point of the arm: the nearest points with a total weight of
    /// `needed`, and all that tie with the last. With `drops`, none if the total is less.
    pub fn search(
        &mut self,
        search: &Search<'_>,
        arm: bool,
        needed: usize,
        drops: bool,
        tell: &mut dyn FnMut(usize, &[u32]),
    ) {
        let (rows, columns) = (search.units.arm(arm), search.units.arm(!arm));
        let blocks = &search.arms[usize::from(arm)];
        let others = &search.arms[usize::from(!arm)];
        let targets = &search.stretched[usize::from(!arm)];
        for first in rows.clone().step_by(TOGETHER) {
            let count = TOGETHER.min(rows.end - first);
            let place = first - rows.start;
            blocks.queries(place..place + count, search.axes, &mut self.queries);
            for neighbours in &mut self.neighbours {
                neighbours.start(needed as f64 - ROUNDING, search.tolerance);
            }
            let mut heard = Heard {
                search,
                blocks,
                others,
                first,
                rows: rows.start,
                columns: columns.start,
                reach: [f32::INFINITY; TOGETHER],
                neighbours: &mut self.neighbours,
            };
            scan::<_, false>(search.instructions, targets, &self.queries, &mut heard);
            for (query, neighbours) in self.neighbours[..count].iter_mut().enumerate() {
                if neighbours.end() || !drops {
                    self.points.clear();
                    self.points
                        .extend(neighbours.points.iter().map(|&(_, other)| other));
                    tell(first + query, &self.points);
                }
            }
        }
    }
}

struct Heard<'a> {
    search: &'a Search<'a>,
    blocks: &'a Blocks,
    others: &'a Blocks,
    first: usize,
    rows: usize,
    columns: usize,
    reach: [f32; TOGETHER],
    neighbours: &'a mut [SearchResult; TOGETHER],
}

impl Hits for Heard<'_> {
    fn reach(&self) -> &[f32; TOGETHER] {
        &self.reach
    }

    fn hit(&mut self, query: usize, point: usize) {
        let row = self.first + query;
        let other = self.columns + point;
        let squared = self
            .search
            .axes
            .squared(self.blocks.of(row - self.rows), self.others.of(point));
        let neighbours = &mut self.neighbours[query];
        if squared > neighbours.reach() || !self.search.calipers.admit(row, other) {
            return;
        }
        neighbours.take(squared, other, self.search.units.weight[other]);
        self.reach[query] = self.search.axes.reach(neighbours.reach());
    }
}

/// The neighbours of one query as they are found.
#[derive(Default)]
struct SearchResult {
    /// Squared distance and point.
    points: Vec<(f64, u32)>,
    /// The nearest of the needed weight: squared distance and weight, ascending.
    nearest: Vec<(f64, f64)>,
    weight: f64,
    needed: f64,
    tolerance: f64,
    /// The squared distance of the last that is needed, as far as known.
    last: f64,
}

impl SearchResult {
    /// Forgets everything.
    fn start(&mut self, needed: f64, tolerance: f64) {
        self.points.clear();
        self.nearest.clear();
        self.weight = 0.0;
        self.needed = needed;
        self.tolerance = tolerance;
        self.last = f64::INFINITY;
    }

    /// Returns the largest distance of a neighbour.
    fn reach(&self) -> f64 {
        self.last + self.tolerance
    }

    /// Takes a neighbour within reach.
    fn take(&mut self, squared: f64, point: usize, weight: f64) {
        self.points.push((squared, small(point)));
        if squared >= self.last {
            return;
        }
        let place = self.nearest.partition_point(|&(near, _)| near <= squared);
        self.nearest.insert(place, (squared, weight));
        self.weight += weight;
        while let Some(&(_, furthest)) = self.nearest.last() {
            if self.weight - furthest < self.needed {
                break;
            }
            self.weight -= furthest;
            self.nearest.pop();
        }
        if self.weight >= self.needed {
            self.last = self.nearest.last().map_or(self.last, |&(last, _)| last);
        }
    }

    /// Keeps the needed neighbours and their ties; returns whether there were enough.
    fn end(&mut self) -> bool {
        let reach = self.reach();
        self.points.retain(|&(squared, _)| squared <= reach);
        self.weight >= self.needed
    }
}
