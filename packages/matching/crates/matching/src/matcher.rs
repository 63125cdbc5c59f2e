//! Matches the units of a problem: finds for each unit its matches in the other arm.

use std::collections::HashMap;

use crate::embed::{Points, embed};
use crate::instructions::Instructions;
use crate::neighbours::{Query, WeightOf};
use crate::parallel::{Progress, parallel_map};
use crate::pool::Pool;
use crate::problem::{Method, Pairs, Problem, Restriction, Rules, to_u32};
use crate::random::Draws;
use crate::search::Search;

/// Number of queries that a thread takes from the work list together.
pub(crate) const QUERY_CHUNK: usize = 64;
/// The same number with a filter, which needs less time for a query.
const FILTER_CHUNK: usize = 256;
/// With fewer comparisons (of a query with a block), no trial and no second thread saves time.
pub(crate) const MIN_BLOCK_COMPARISONS: usize = 1 << 14;
/// Amount that is subtracted from the needed weight for the rounding errors of sums.
pub(crate) const WEIGHT_ROUNDING: f64 = 1e-10;

/// A problem whose units are arranged for searching.
pub struct Matcher {
    pub(crate) problem: Problem,
    points: Points,
    /// The controls, then the treated units.
    pub(crate) pools: [Pool; 2],
    /// Index of each row's point in the pool of its arm.
    pub(crate) point_of_row: Vec<u32>,
    /// For each restricted row: the other rows of its restrictions, and the squared distances.
    fixed_distances: HashMap<usize, Vec<(usize, f64)>>,
    uses_tree: bool,
    instructions: Instructions,
}

/// The neighbours of some points of a pool, in the order of the queries.
pub(crate) struct Neighbourhoods {
    /// Index in `neighbours` of the first neighbour of each query.
    starts: Vec<usize>,
    /// Squared distance and point of each neighbour, query after query.
    neighbours: Vec<(f64, u32)>,
    /// For each query, the squared distance of the last needed neighbour.
    last_distances: Vec<f64>,
    /// For each query, whether the neighbours have the needed weight.
    has_enough: Vec<bool>,
}

impl Neighbourhoods {
    /// Returns the squared distance and the point of each neighbour, for an index of a query.
    pub(crate) fn of(&self, index: usize) -> &[(f64, u32)] {
        &self.neighbours[self.starts[index]..self.starts[index + 1]]
    }

    pub(crate) fn has_enough(&self, index: usize) -> bool {
        self.has_enough[index]
    }
}

impl Matcher {
    /// Arranges the units for searching with the widest instructions of the processor.
    #[must_use]
    pub fn new(problem: Problem) -> Self {
        Self::with_instructions(problem, Instructions::best())
    }

    /// Arranges the units for searching with these instructions.
    #[must_use]
    pub fn with_instructions(problem: Problem, instructions: Instructions) -> Self {
        let points = embed(&problem);
        let merges_rows =
            problem.restrictions.is_empty() && problem.replace && problem.weights.is_none();
        let pools = [false, true].map(|arm| {
            let rows: Vec<u32> = (0..)
                .zip(&problem.treated)
                .filter(|&(_, &treated)| treated == arm)
                .map(|(row, _)| row)
                .collect();
            Pool::new(&problem, &points, &rows, merges_rows)
        });
        let mut point_of_row = vec![0; problem.rows()];
        for pool in &pools {
            for (index, point) in (0..).zip(0..pool.point_count) {
                for &row in pool.members(point) {
                    point_of_row[row as usize] = index;
                }
            }
        }
        let fixed_distances = fixed_distances(&problem.restrictions);
        let mut matcher = Self {
            problem,
            points,
            pools,
            point_of_row,
            fixed_distances,
            uses_tree: true,
            instructions,
        };
        matcher.uses_tree = matcher.prefers_tree();
        matcher
    }

    /// Whether the search uses a tree of boxes.
    #[must_use]
    pub fn uses_tree(&self) -> bool {
        self.uses_tree
    }

    pub(crate) fn pool(&self, arm: bool) -> &Pool {
        &self.pools[usize::from(arm)]
    }

    /// Whether to search with the tree: as requested, or if a trial with some queries is faster.
    fn prefers_tree(&self) -> bool {
        match self.problem.method {
            Method::Tree => return true,
            Method::BruteForce => return false,
            Method::Automatic => {}
        }
        let (mut tree_cost, mut brute_force_cost) = (0.0, 0.0);
        for arm in self.problem.estimand.matched_arms() {
            let (queries, targets) = (self.pool(arm), self.pool(!arm));
            let point_count = queries.point_count;
            let comparisons = point_count * targets.block_count();
            if targets.tree.is_empty() || comparisons < MIN_BLOCK_COMPARISONS {
                continue;
            }
            let trial: Vec<Query<'_>> = Search::trial_points(point_count)
                .map(|point| self.query(arm, point, !arm, self.match_count()))
                .collect();
            let weight_of = |point, target| self.admitted_weight(arm, point, target);
            let (by_tree, by_brute_force) = self.search(targets, &weight_of).costs(&trial);
            tree_cost += by_tree;
            brute_force_cost += by_brute_force;
        }
        tree_cost < brute_force_cost
    }

    pub(crate) fn match_count(&self) -> f64 {
        self.problem.matches as f64
    }

    pub(crate) fn search<'a>(&self, pool: &'a Pool, weight_of: &'a WeightOf<'a>) -> Search<'a> {
        Search {
            pool,
            weight_of,
            uses_tree: self.uses_tree && !pool.tree.is_empty(),
            filter: None,
            in_packets: false,
            instructions: self.instructions,
        }
    }

    /// Returns the weight of a point of the other arm; `None` if it cannot match a point of `arm`.
    pub(crate) fn admitted_weight(&self, arm: bool, point: usize, target: usize) -> Option<f64> {
        let targets = self.pool(!arm);
        let row = self.pool(arm).members(point)[0] as usize;
        let other = targets.members(target)[0] as usize;
        self.within_caliper(row, other)
            .then(|| targets.weight[target])
    }

    /// Returns the query for the neighbours of a point of `arm` in the pool of the arm `target`.
    /// `weight` is the total weight of the neighbours to find.
    pub(crate) fn query(&self, arm: bool, point: usize, target: bool, weight: f64) -> Query<'_> {
        let row = self.pool(arm).members(point)[0] as usize;
        let distances = self.fixed_distances.get(&row);
        let pairs = || {
            let distances = distances.into_iter().flatten();
            distances
                .filter(|&&(other, _)| self.problem.treated[other] == target)
                .map(|&(other, squared)| (self.point_of_row[other] as usize, squared))
        };
        let limits = |caliper: &Vec<f64>| {
            self.pools[0]
                .caliper_columns
                .iter()
                .map(|&column| (self.x(row, column), caliper[column]))
                .collect()
        };
        Query {
            point,
            coordinates: self.points.row(row),
            calipers: self.problem.caliper.as_ref().map_or_else(Vec::new, limits),
            needed_weight: weight - WEIGHT_ROUNDING,
            tolerance: self.problem.tie_limit(0.0),
            fixed_distances: pairs().filter(|&(_, squared)| squared >= 0.0).collect(),
            forbidden: pairs()
                .filter(|&(_, squared)| squared < 0.0)
                .map(|(point, _)| point)
                .collect(),
        }
    }

    fn x(&self, row: usize, column: usize) -> f64 {
        self.problem.x[row * self.problem.columns + column]
    }

    /// Whether two rows differ in each column by at most its caliper.
    pub(crate) fn within_caliper(&self, row: usize, other: usize) -> bool {
        let Some(caliper) = &self.problem.caliper else {
            return true;
        };
        self.pools[0]
            .caliper_columns
            .iter()
            .all(|&column| (self.x(row, column) - self.x(other, column)).abs() <= caliper[column])
    }

    /// Whether a caliper or a restriction may leave a unit without matches.
    pub(crate) fn can_drop_units(&self) -> bool {
        self.problem.caliper.is_some() || !self.problem.restrictions.is_empty()
    }

    /// Returns the matched pairs; `None` if `progress` stops the search. `progress` gets the
    /// numbers of finished and of all units.
    pub fn pairs(&self, progress: &Progress<'_>) -> Option<Pairs> {
        if !self.problem.replace {
            return self.pairs_without_replacement(progress);
        }
        let arms = self.problem.estimand.matched_arms();
        let total: usize = arms.iter().map(|&arm| self.pool(arm).point_count).sum();
        let mut neighbours_of_arms = [None, None];
        let mut finished = 0;
        for arm in arms {
            let report = |done, _| progress(finished + done, total);
            let weight_of = |point, target| self.admitted_weight(arm, point, target);
            let search = self.search(self.pool(!arm), &weight_of);
            let points: Vec<u32> = (0..to_u32(self.pool(arm).point_count)).collect();
            let count = self.match_count();
            let neighbours = self.neighbourhoods(&search, (arm, !arm), count, &points, &report)?;
            neighbours_of_arms[usize::from(arm)] = Some(neighbours);
            finished += self.pool(arm).point_count;
        }
        let mut pairs = Pairs::default();
        let mut members = Vec::new();
        for row in 0..self.problem.rows() {
            let arm = self.problem.treated[row];
            let Some(neighbours) = &neighbours_of_arms[usize::from(arm)] else {
                continue;
            };
            let point = self.point_of_row[row] as usize;
            let targets = self.pool(!arm);
            if !neighbours.has_enough[point] && self.can_drop_units() {
                pairs.dropped.push(row);
                continue;
            }
            members.clear();
            for &(squared, target) in neighbours.of(point) {
                let rows = targets.members(target as usize).iter();
                members.extend(rows.map(|&member| (squared, member as usize)));
            }
            let last_distance = neighbours.last_distances[point];
            self.add_pairs(&mut pairs, row, &mut members, last_distance);
        }
        Some(pairs)
    }

    /// Adds the pairs of the unit `row`. `members` are its neighbours with their squared distances,
    /// and `last_distance` is the squared distance of the last needed neighbour.
    pub(crate) fn add_pairs(
        &self,
        pairs: &mut Pairs,
        row: usize,
        members: &mut Vec<(f64, usize)>,
        last_distance: f64,
    ) {
        if !self.problem.ties && members.len() > self.problem.matches {
            draw_among_ties(&self.problem, row, members, last_distance);
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

    /// Finds the neighbours of some points of the first arm in the pool of the second, on all
    /// threads. The search is in that pool.
    pub(crate) fn neighbourhoods(
        &self,
        search: &Search<'_>,
        (arm, target): (bool, bool),
        weight: f64,
        points: &[u32],
        progress: &Progress<'_>,
    ) -> Option<Neighbourhoods> {
        let threads = match points.len() * search.pool.block_count() {
            0..MIN_BLOCK_COMPARISONS => 1,
            _ => self.problem.threads,
        };
        let chunk_size = match search.filter {
            Some(_) => FILTER_CHUNK,
            None => QUERY_CHUNK,
        };
        let chunks = parallel_map(threads, points.len(), chunk_size, progress, |range| {
            let points = points[range].iter();
            let query = |&point: &u32| self.query(arm, point as usize, target, weight);
            let queries: Vec<Query<'_>> = points.map(query).collect();
            let (mut ends, mut neighbours) = (Vec::with_capacity(queries.len()), Vec::new());
            for result in search.run(&queries) {
                neighbours.extend_from_slice(&result.neighbours);
                ends.push((neighbours.len(), result.last_distance, result.has_enough));
            }
            (ends, neighbours)
        })?;
        let mut neighbourhoods = Neighbourhoods {
            starts: vec![0],
            neighbours: Vec::with_capacity(chunks.iter().map(|(_, chunk)| chunk.len()).sum()),
            last_distances: Vec::with_capacity(points.len()),
            has_enough: Vec::with_capacity(points.len()),
        };
        for (ends, neighbours) in chunks {
            let offset = neighbourhoods.neighbours.len();
            neighbourhoods.neighbours.extend(neighbours);
            for (end, last_distance, has_enough) in ends {
                neighbourhoods.starts.push(offset + end);
                neighbourhoods.last_distances.push(last_distance);
                neighbourhoods.has_enough.push(has_enough);
            }
        }
        Some(neighbourhoods)
    }
}

/// Returns for each restricted row the other rows with their squared distances. If a pair has
/// several restrictions, the last restriction counts.
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

/// Drops neighbours of the row at random until the requested number is left. R may drop any
/// neighbour. The correct rules drop only ties at the squared distance `last`.
fn draw_among_ties(problem: &Problem, row: usize, members: &mut Vec<(f64, usize)>, last: f64) {
    let mut draws = Draws::new(problem.seed, row);
    members.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let nearer_count = match problem.rules {
        Rules::Correct => members
            .iter()
            .filter(|&&(squared, _)| problem.tie_limit(squared) < last)
            .count(),
        Rules::AsInR => 0,
    };
    // A partial Fisher-Yates shuffle of the tied neighbours.
    for position in nearer_count..problem.matches {
        let chosen = position + draws.below(members.len() - position);
        members.swap(position, chosen);
    }
    members.truncate(problem.matches);
}
