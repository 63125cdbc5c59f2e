//! The variance of a unit's outcome given its covariates, from similar units of its arm.

use crate::filter::Filter;
use crate::matcher::Matcher;
use crate::neighbours::{Query, WeightOf};
use crate::parallel::{Progress, parallel_map};
use crate::pool::Pool;
use crate::problem::{Method, Pairs, Rules, to_u32};
use crate::search::Search;

/// With fewer comparisons (of a query with a block), a filter saves no time.
const MIN_FILTERED_COMPARISONS: usize = 1 << 14;

/// With fewer points, a second thread saves no time for the sums.
const MIN_POINTS_PER_THREAD: usize = 1 << 12;
/// Number of points whose sums a thread takes from the work list together.
const POINT_CHUNK: usize = 1 << 10;

/// Weighted mean and sum of squares of some outcomes.
#[derive(Clone, Copy, Default)]
struct Moments {
    weight: f64,
    squared_weights: f64,
    mean: f64,
    /// Weighted sum of squared deviations from the mean.
    squares: f64,
}

impl Moments {
    fn of_values(values: impl Iterator<Item = (f64, f64)>) -> Self {
        values.fold(Self::default(), |sum, (weight, value)| {
            sum.combined_with(Self {
                weight,
                squared_weights: weight * weight,
                mean: value,
                squares: 0.0,
            })
        })
    }

    fn combined_with(self, other: Self) -> Self {
        let weight = self.weight + other.weight;
        if weight == 0.0 {
            return self;
        }
        let difference = other.mean - self.mean;
        let share = other.weight / weight;
        Self {
            weight,
            squared_weights: self.squared_weights + other.squared_weights,
            mean: self.mean + difference * share,
            squares: self.squares + other.squares + difference * difference * self.weight * share,
        }
    }
}

impl Matcher {
    /// Returns for each row of `pairs` the variance of the outcome among the row and its nearest
    /// `neighbours` of the same arm (Abadie and Imbens 2006, eq. 14). The variance is `None` for a
    /// row without a pair or without a neighbour. Returns `None` if `progress` stops the search.
    /// The correct rules use the neighbours that exist; docs/evidence/r-packages.md has the rules
    /// of R.
    pub fn variances(
        &self,
        outcome: &[f64],
        pairs: &Pairs,
        neighbours: f64,
        progress: &Progress<'_>,
    ) -> Option<Vec<Option<f64>>> {
        let problem = &self.problem;
        let mut variances = vec![None; problem.rows()];
        let follows_r = problem.rules == Rules::AsInR;
        let mut in_pairs = vec![follows_r; problem.rows()];
        for (query, matched, _) in pairs.iter() {
            in_pairs[query] = true;
            in_pairs[matched] = true;
        }
        let neighbours = if follows_r {
            neighbours.min(self.weight(false)).min(self.weight(true))
        } else {
            neighbours
        };
        for arm in [false, true] {
            let pool = self.pool(arm);
            let is_in_pair = |&point: &u32| {
                let mut members = pool.members(point as usize).iter();
                members.any(|&row| in_pairs[row as usize])
            };
            let points: Vec<u32> = (0..to_u32(pool.point_count)).filter(is_in_pair).collect();
            let has_caliper = problem.caliper.is_some();
            let weight_of = |point: usize, other: usize| {
                let first_row = |point: usize| pool.members(point)[0] as usize;
                if other == point {
                    // The other rows of the point are neighbours of its first row.
                    let other_weight = pool.weight[point] - problem.weight(first_row(point));
                    return (pool.members(point).len() > 1).then_some(other_weight);
                }
                let is_near =
                    !has_caliper || self.within_caliper(first_row(point), first_row(other));
                is_near.then(|| pool.weight[other])
            };
            let filter = self.filter_of(pool, points.len());
            let search = self.search_in_arm(arm, filter.as_ref(), &weight_of, neighbours, &points);
            let neighbourhoods =
                self.neighbourhoods(&search, (arm, arm), neighbours, &points, progress)?;
            let moments: Vec<Moments> = (0..pool.point_count)
                .map(|point| {
                    Moments::of_values(pool.members(point).iter().map(|&row| {
                        let row = row as usize;
                        (problem.weight(row), outcome[row])
                    }))
                })
                .collect();
            let variance_of = |index: usize| {
                let (point, neighbours) = (points[index] as usize, neighbourhoods.of(index));
                self.variance_of(
                    pool,
                    &moments,
                    point,
                    neighbours,
                    neighbourhoods.has_enough(index),
                )
            };
            let threads = if points.len() < MIN_POINTS_PER_THREAD {
                1
            } else {
                problem.threads
            };
            let chunks = parallel_map(threads, points.len(), POINT_CHUNK, progress, |range| {
                range.map(variance_of).collect::<Vec<Option<f64>>>()
            })?;
            for (&point, variance) in points.iter().zip(chunks.into_iter().flatten()) {
                for &row in pool.members(point as usize) {
                    variances[row as usize] = variance;
                }
            }
        }
        Some(variances)
    }

    /// Returns the variance among the rows of a point and of its neighbours.
    fn variance_of(
        &self,
        pool: &Pool,
        moments: &[Moments],
        point: usize,
        neighbours: &[(f64, u32)],
        has_enough: bool,
    ) -> Option<f64> {
        let other_points = neighbours.iter().map(|&(_, other)| other as usize);
        let mut others: Vec<usize> = other_points.filter(|&other| other != point).collect();
        // The order of the pool depends on the method, but the sums must not.
        others.sort_unstable_by_key(|&other| pool.members(other)[0]);
        let combined = others.into_iter().fold(moments[point], |sum, other| {
            sum.combined_with(moments[other])
        });
        let has_no_neighbour = neighbours.is_empty();
        match self.problem.rules {
            Rules::AsInR if self.can_drop_units() && !has_enough => Some(0.0),
            Rules::AsInR => {
                // In R, a unit that needs its whole arm finds itself, with outcome 0.
                let counts_itself = !has_enough && self.problem.weights.is_none();
                let combined = combined.combined_with(Moments {
                    weight: f64::from(u8::from(counts_itself)),
                    ..Moments::default()
                });
                let has_no_neighbour = has_no_neighbour && !counts_itself;
                (!has_no_neighbour).then(|| combined.squares / (combined.weight - 1.0))
            }
            Rules::Correct => {
                let divisor = combined.weight - combined.squared_weights / combined.weight;
                (!has_no_neighbour && divisor > 0.0).then(|| combined.squares / divisor)
            }
        }
    }

    /// Returns a copy of a pool in single precision, if it saves time for so many queries. Calipers
    /// need the boxes of the pool itself.
    fn filter_of(&self, pool: &Pool, queries: usize) -> Option<Filter> {
        let is_large = queries * pool.block_count() >= MIN_FILTERED_COMPARISONS;
        (is_large && self.problem.caliper.is_none()).then(|| Filter::new(pool, pool))
    }

    /// Returns the search for the neighbours of these points in their own arm, by tree or by brute
    /// force.
    fn search_in_arm<'a>(
        &'a self,
        arm: bool,
        filter: Option<&'a Filter>,
        weight_of: &'a WeightOf<'a>,
        neighbours: f64,
        points: &[u32],
    ) -> Search<'a> {
        let pool = self.pool(arm);
        let mut search = Search {
            filter,
            ..self.search(pool, weight_of)
        };
        let is_chosen = self.problem.method == Method::Automatic;
        if !is_chosen || filter.is_none() || pool.tree.is_empty() {
            return search;
        }
        search.uses_tree = true;
        let query = |index: usize| self.query(arm, points[index] as usize, arm, neighbours);
        let trial: Vec<Query<'_>> = Search::trial_points(points.len()).map(query).collect();
        let (by_tree, by_brute_force) = search.costs(&trial);
        search.in_packets = true;
        let trial: Vec<Query<'_>> = Search::trial_packets(points.len()).map(query).collect();
        let (in_packets, all_blocks) = search.costs(&trial);
        let in_packets = in_packets / all_blocks * by_brute_force;
        search.in_packets = in_packets < by_tree;
        search.uses_tree = in_packets.min(by_tree) < by_brute_force;
        search
    }

    fn weight(&self, arm: bool) -> f64 {
        let rows = (0..self.problem.rows()).filter(|&row| self.problem.treated[row] == arm);
        rows.map(|row| self.problem.weight(row)).sum()
    }
}
