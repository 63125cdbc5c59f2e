//! Finds the pairs of a problem.

use std::collections::HashMap;

use crate::embed::{Points, embed};
use crate::instructions::Instructions;
use crate::neighbours::{Admitted, Query};
use crate::parallel::{Progress, in_parallel};
use crate::pool::Pool;
use crate::problem::{Method, Pairs, Problem, Restriction, Rules};
use crate::random::Draws;
use crate::search::Search;

/// Queries that a thread takes at once.
pub(crate) const AT_ONCE: usize = 64;
/// Number of queries of a trial, which shows how much of the data a tree leaves out.
const TRIAL_QUERIES: usize = 24;
/// Cost of a block that the tree leads to, in blocks of brute force, and cost of a node.
const COST_OF_BLOCK: f64 = 3.0;
const COST_OF_NODE: f64 = 6.0;
/// With fewer blocks to search for all queries together, neither a trial nor a second thread saves
/// time.
const MIN_BLOCKS: usize = 1 << 14;

/// A problem whose units are in place for searching.
pub struct Matcher {
    pub(crate) problem: Problem,
    points: Points,
    pub(crate) pools: [Pool; 2],
    /// Point of each row in the pool of its arm.
    pub(crate) position: Vec<u32>,
    fixed_distances: HashMap<usize, Vec<(usize, f64)>>,
    by_tree: bool,
    instructions: Instructions,
}

/// The neighbours of all points of a pool.
pub(crate) struct Neighbourhoods {
    starts: Vec<usize>,
    neighbours: Vec<(f64, u32)>,
    last: Vec<f64>,
    enough: Vec<bool>,
}

impl Neighbourhoods {
    pub(crate) fn of(&self, point: usize) -> &[(f64, u32)] {
        &self.neighbours[self.starts[point]..self.starts[point + 1]]
    }

    pub(crate) fn enough(&self, point: usize) -> bool {
        self.enough[point]
    }
}

impl Matcher {
    /// Puts the units of the problem in place.
    #[must_use]
    pub fn new(problem: Problem) -> Self {
        Self::with_instructions(problem, Instructions::best())
    }

    /// Puts the units in place, to be searched by these instructions of the processor.
    #[must_use]
    pub fn with_instructions(problem: Problem, instructions: Instructions) -> Self {
        let points = embed(&problem);
        let merged =
            problem.restrictions.is_empty() && problem.replace && problem.weights.is_none();
        let pools = [false, true].map(|arm| {
            let rows: Vec<u32> = (0..)
                .zip(&problem.treated)
                .filter(|&(_, &treated)| treated == arm)
                .map(|(row, _)| row)
                .collect();
            Pool::new(&problem, &points, &rows, merged)
        });
        let mut position = vec![0; problem.rows()];
        for pool in &pools {
            for (place, point) in (0..).zip(0..pool.points) {
                for &row in pool.members(point) {
                    position[row as usize] = place;
                }
            }
        }
        let fixed_distances = fixed_distances(&problem.restrictions);
        let mut matcher = Self {
            problem,
            points,
            pools,
            position,
            fixed_distances,
            by_tree: true,
            instructions,
        };
        matcher.by_tree = matcher.prefers_tree();
        matcher
    }

    /// Whether a tree of boxes is searched.
    #[must_use]
    pub fn uses_tree(&self) -> bool {
        self.by_tree
    }

    pub(crate) fn pool(&self, arm: bool) -> &Pool {
        &self.pools[usize::from(arm)]
    }

    fn prefers_tree(&self) -> bool {
        match self.problem.method {
            Method::Tree => return true,
            Method::BruteForce => return false,
            Method::Chosen => {}
        }
        let (mut by_tree, mut by_force) = (0.0, 0.0);
        for arm in self.problem.estimand.arms() {
            let (queries, targets) = (self.pool(arm), self.pool(!arm));
            if targets.tree.is_flat() || queries.points * targets.block_count() < MIN_BLOCKS {
                continue;
            }
            let points = (0..queries.points).step_by(queries.points.div_ceil(TRIAL_QUERIES));
            let trial: Vec<Query<'_>> = points
                .map(|point| self.query(arm, point, !arm, self.matches()))
                .collect();
            let admitted = |point, target| self.admitted(arm, point, target);
            for result in self.search(targets, &admitted).run(&trial) {
                let (blocks, nodes) = (result.blocks as f64, result.nodes as f64);
                by_tree += blocks * COST_OF_BLOCK + nodes * COST_OF_NODE;
                by_force += targets.block_count() as f64;
            }
        }
        by_tree < by_force
    }

    pub(crate) fn matches(&self) -> f64 {
        self.problem.matches as f64
    }

    pub(crate) fn search<'a>(&self, pool: &'a Pool, admitted: &'a Admitted<'a>) -> Search<'a> {
        Search {
            pool,
            admitted,
            by_tree: self.by_tree && !pool.tree.is_flat(),
            instructions: self.instructions,
        }
    }

    /// Returns the weight of a point of the other arm for the point of `arm`, if admitted.
    pub(crate) fn admitted(&self, arm: bool, point: usize, target: usize) -> Option<f64> {
        let targets = self.pool(!arm);
        let row = self.pool(arm).members(point)[0] as usize;
        let other = targets.members(target)[0] as usize;
        self.within_caliper(row, other)
            .then(|| targets.weight[target])
    }

    /// The query for the neighbours that the point of `arm` needs from the pool of `target`.
    pub(crate) fn query(&self, arm: bool, point: usize, target: bool, needed: f64) -> Query<'_> {
        let row = self.pool(arm).members(point)[0] as usize;
        let fixed = self.fixed_distances.get(&row);
        let fixed = || {
            let pairs = fixed.into_iter().flatten();
            pairs
                .filter(|&&(other, _)| self.problem.treated[other] == target)
                .map(|&(other, squared)| (self.position[other] as usize, squared))
        };
        let fence = |caliper: &Vec<f64>| {
            self.pools[0]
                .fenced
                .iter()
                .map(|&column| (self.x(row, column), caliper[column]))
                .collect()
        };
        Query {
            number: point,
            point: self.points.of(row),
            fence: self.problem.caliper.as_ref().map_or_else(Vec::new, fence),
            needed: needed - 1e-10,
            slack: self.problem.reach(0.0),
            fixed: fixed().filter(|&(_, squared)| squared >= 0.0).collect(),
            forbidden: fixed()
                .filter(|&(_, squared)| squared < 0.0)
                .map(|(point, _)| point)
                .collect(),
        }
    }

    fn x(&self, row: usize, column: usize) -> f64 {
        self.problem.x[row * self.problem.columns + column]
    }

    /// Whether two rows are no further apart than the caliper in any column.
    pub(crate) fn within_caliper(&self, row: usize, other: usize) -> bool {
        let Some(caliper) = &self.problem.caliper else {
            return true;
        };
        self.pools[0]
            .fenced
            .iter()
            .all(|&column| (self.x(row, column) - self.x(other, column)).abs() <= caliper[column])
    }

    /// Whether something can keep a unit from being matched.
    pub(crate) fn filtered(&self) -> bool {
        self.problem.caliper.is_some() || !self.problem.restrictions.is_empty()
    }

    /// Returns the pairs; `None` if `progress`, which gets the numbers of finished and of all
    /// units, stops the search.
    pub fn pairs(&self, progress: &Progress<'_>) -> Option<Pairs> {
        if !self.problem.replace {
            return self.pairs_without_replacement(progress);
        }
        let queried = self.problem.estimand.arms();
        let total: usize = queried.iter().map(|&arm| self.pool(arm).points).sum();
        let mut arms = [None, None];
        let mut before = 0;
        for arm in queried {
            let report = |done, _| progress(before + done, total);
            let admitted = |point, target| self.admitted(arm, point, target);
            let all = |_: usize| true;
            let neighbours =
                self.neighbourhoods(arm, !arm, self.matches(), &all, &report, &admitted)?;
            arms[usize::from(arm)] = Some(neighbours);
            before += self.pool(arm).points;
        }
        let mut pairs = Pairs::default();
        let mut members = Vec::new();
        for row in 0..self.problem.rows() {
            let arm = self.problem.treated[row];
            let Some(neighbours) = &arms[usize::from(arm)] else {
                continue;
            };
            let point = self.position[row] as usize;
            let targets = self.pool(!arm);
            if !neighbours.enough[point] && self.filtered() {
                pairs.dropped.push(row);
                continue;
            }
            members.clear();
            for &(squared, target) in neighbours.of(point) {
                let rows = targets.members(target as usize).iter();
                members.extend(rows.map(|&member| (squared, member as usize)));
            }
            self.add(&mut pairs, row, &mut members, neighbours.last[point]);
        }
        Some(pairs)
    }

    /// Adds the pairs of one unit.
    pub(crate) fn add(
        &self,
        pairs: &mut Pairs,
        row: usize,
        members: &mut Vec<(f64, usize)>,
        last: f64,
    ) {
        if !self.problem.ties && members.len() > self.problem.matches {
            draw_lots(&self.problem, row, members, last);
        }
        members.sort_unstable_by_key(|&(_, member)| member);
        let weight = |&(_, member): &(f64, usize)| self.problem.weight(member);
        let total: f64 = members.iter().map(weight).sum();
        for &(_, member) in members.iter() {
            pairs.query.push(row);
            pairs.matched.push(member);
            let share = if total > 0.0 {
                self.problem.weight(member) / total
            } else {
                1.0 / members.len() as f64
            };
            pairs.weight.push(self.problem.weight(row) * share);
        }
    }

    /// Finds the neighbours in the pool of `target` of each `wanted` point of the arm, by all
    /// threads. The other points get none.
    pub(crate) fn neighbourhoods(
        &self,
        arm: bool,
        target: bool,
        needed: f64,
        wanted: &(dyn Fn(usize) -> bool + Sync),
        progress: &Progress<'_>,
        admitted: &Admitted<'_>,
    ) -> Option<Neighbourhoods> {
        let points = self.pool(arm).points;
        let search = self.search(self.pool(target), admitted);
        let threads = match points * search.pool.block_count() {
            0..MIN_BLOCKS => 1,
            _ => self.problem.threads,
        };
        let chunks = in_parallel(threads, points, AT_ONCE, progress, |range| {
            let mut ends = Vec::with_capacity(range.len());
            let queries: Vec<Query<'_>> = range
                .clone()
                .filter(|&point| wanted(point))
                .map(|point| self.query(arm, point, target, needed))
                .collect();
            let mut neighbours = Vec::new();
            let mut results = search.run(&queries).into_iter();
            for point in range {
                let result = if wanted(point) { results.next() } else { None };
                let result = result.unwrap_or_default();
                neighbours.extend_from_slice(&result.neighbours);
                ends.push((neighbours.len(), result.last, result.enough));
            }
            (ends, neighbours)
        })?;
        let mut all = Neighbourhoods {
            starts: vec![0],
            neighbours: Vec::with_capacity(chunks.iter().map(|(_, chunk)| chunk.len()).sum()),
            last: Vec::with_capacity(points),
            enough: Vec::with_capacity(points),
        };
        for (ends, neighbours) in chunks {
            let before = all.neighbours.len();
            all.neighbours.extend(neighbours);
            for (end, last, enough) in ends {
                all.starts.push(before + end);
                all.last.push(last);
                all.enough.push(enough);
            }
        }
        Some(all)
    }
}

/// Returns the rows to which each row has a fixed distance; the last restriction of a pair counts.
fn fixed_distances(restrictions: &[Restriction]) -> HashMap<usize, Vec<(usize, f64)>> {
    let mut distances: HashMap<usize, Vec<(usize, f64)>> = HashMap::new();
    for restriction in restrictions {
        let (first, second) = (restriction.first, restriction.second);
        for (row, other) in [(first, second), (second, first)] {
            let pairs = distances.entry(row).or_default();
            pairs.retain(|&(known, _)| known != other);
            pairs.push((other, restriction.squared_distance));
        }
    }
    distances
}

/// Drops neighbours of the row by lot until the requested number is left.
///
/// R drops at random from all of them. It is correct to drop only from the neighbours that tie for
/// the last place, because a nearer unit is a match in any case.
fn draw_lots(problem: &Problem, row: usize, members: &mut Vec<(f64, usize)>, last: f64) {
    let mut lots = Draws::of(problem.seed, row);
    members.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let nearer = match problem.rules {
        Rules::Correct => members
            .iter()
            .filter(|&&(squared, _)| problem.reach(squared) < last)
            .count(),
        Rules::AsInR => 0,
    };
    // A partial Fisher-Yates shuffle of the tied neighbours.
    for place in nearer..problem.matches {
        let lot = place + lots.below(members.len() - place);
        members.swap(place, lot);
    }
    members.truncate(problem.matches);
}
