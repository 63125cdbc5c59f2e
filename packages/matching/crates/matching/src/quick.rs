//! Generalised full matching (Sävje, Higgins and Sekhon 2021, Political Analysis 29(4)).
//!
//! The closed neighbourhood of a row has the row itself and the nearest rows that a stratum needs.
//! Seeds are rows whose closed neighbourhoods do not overlap, as many as a greedy search finds. A
//! seed and its neighbourhood are a stratum. Each other row joins a stratum of its neighbourhood.
//! No two rows of a stratum are further from each other than four times the largest distance in
//! the best strata (section 4 of the paper).

use crate::embed::{Points, embed};
use crate::filter::Filter;
use crate::instructions::Instructions;
use crate::matcher::{MIN_BLOCK_COMPARISONS, QUERY_CHUNK, WEIGHT_ROUNDING};
use crate::neighbours::{Query, SearchResult};
use crate::parallel::{Progress, parallel_map};
use crate::pool::Pool;
use crate::problem::{Problem, to_u32};
use crate::search::Search;

/// Stratum of a row that has none.
const NO_STRATUM: u32 = u32::MAX;

/// The rows to divide into strata, and what a stratum needs. The caller has checked the lengths.
pub struct QuickProblem {
    /// The covariates, the metric and the number of threads. The two arms are not used.
    pub problem: Problem,
    /// Arm of each row.
    pub arm: Vec<u32>,
    /// Smallest number of rows of each arm in a stratum; no arm has fewer rows in all.
    pub arm_sizes: Vec<usize>,
    /// Smallest number of rows in a stratum, at least the sum of `arm_sizes`.
    pub size: usize,
    /// Whether each row must be in a stratum. The other rows are used where they are needed.
    pub is_target: Vec<bool>,
    /// Largest distance of two rows of a stratum; infinite for no limit.
    pub caliper: f64,
}

/// The strata of the rows.
pub struct QuickStrata {
    /// Stratum of each row, in the order of the first rows; `None` for a row without a stratum.
    pub stratum: Vec<Option<u32>>,
    /// Largest distance of a row from the seed of its stratum.
    pub largest_distance: f64,
    /// Lower bound of the largest distance in any strata of all targets. It is the largest
    /// distance in the closed neighbourhood of a target.
    pub lower_bound: f64,
}

/// The closed neighbourhoods of all rows, each of `size` rows.
struct Neighbourhoods {
    size: usize,
    /// Squared distance and row of each member, the nearest first, row after row.
    members: Vec<(f64, u32)>,
}

impl Neighbourhoods {
    fn of(&self, row: u32) -> &[(f64, u32)] {
        let start = row as usize * self.size;
        &self.members[start..start + self.size]
    }

    /// Returns the squared distance of the furthest member.
    fn squared_radius(&self, row: u32) -> f64 {
        self.of(row)[self.size - 1].0
    }
}

impl QuickProblem {
    /// Divides the rows into strata; `None` if `progress` stops the work. `progress` gets the
    /// numbers of finished and of all searches.
    #[must_use]
    pub fn strata(&self, progress: &Progress<'_>) -> Option<QuickStrata> {
        let points = embed(&self.problem);
        let neighbourhoods = self.neighbourhoods(&points, progress)?;
        let (stratum, seeds) = self.grow(&points, &neighbourhoods);
        let labelled = (0..)
            .zip(&stratum)
            .filter(|&(_, &label)| label != NO_STRATUM);
        let largest_square = labelled
            .map(|(row, &label)| squared_distance(&points, row, seeds[label as usize]))
            .fold(0.0, f64::max);
        let lower_square = self
            .targets()
            .map(|row| neighbourhoods.squared_radius(row))
            .fold(0.0, f64::max);
        Some(QuickStrata {
            stratum: in_order_of_first_rows(&stratum, seeds.len()),
            largest_distance: largest_square.sqrt(),
            lower_bound: lower_square.sqrt(),
        })
    }

    fn targets(&self) -> impl Iterator<Item = u32> {
        let rows = (0..).zip(&self.is_target);
        rows.filter(|&(_, &is_target)| is_target)
            .map(|(row, _)| row)
    }

    /// Finds the closed neighbourhoods of all rows, on all threads.
    fn neighbourhoods(&self, points: &Points, progress: &Progress<'_>) -> Option<Neighbourhoods> {
        let all_rows: Vec<u32> = (0..to_u32(self.arm.len())).collect();
        let pool_of = |rows: &[u32]| Pool::new(&self.problem, points, rows, true);
        let pools: Vec<Pool> = (0..to_u32(self.arm_sizes.len()))
            .map(|arm| {
                let rows = all_rows.iter().copied();
                let rows: Vec<u32> = rows.filter(|&row| self.arm[row as usize] == arm).collect();
                pool_of(&rows)
            })
            .collect();
        let needs_more = self.size > self.arm_sizes.iter().sum();
        let all = needs_more.then(|| pool_of(&all_rows));
        let mut neighbourhoods = Neighbourhoods {
            size: self.size,
            members: vec![(0.0, 0); self.arm.len() * self.size],
        };
        let total: usize = pools.iter().map(|pool| pool.point_count).sum();
        let mut finished = 0;
        for (arm, queries) in pools.iter().enumerate() {
            let targets = pools
                .iter()
                .zip(&self.arm_sizes)
                .map(|(pool, &size)| (pool, size));
            let targets = targets.chain(all.as_ref().map(|pool| (pool, self.size)));
            let targets: Vec<Target<'_>> = targets
                .enumerate()
                .map(|(target_arm, (pool, count))| {
                    let uses_tree = prefers_tree(points, queries, pool, count);
                    Target {
                        pool,
                        count,
                        is_own_arm: target_arm == arm,
                        uses_tree,
                        filter: uses_tree.then(|| Filter::new(pool, queries)),
                    }
                })
                .collect();
            let blocks: usize = targets.iter().map(|target| target.pool.block_count()).sum();
            let threads = match queries.point_count * blocks {
                0..MIN_BLOCK_COMPARISONS => 1,
                _ => self.problem.threads,
            };
            let report = |done, _| progress(finished + done, total);
            let chunks = parallel_map(
                threads,
                queries.point_count,
                QUERY_CHUNK,
                &report,
                |range| self.members_of_points(points, queries, &targets, range),
            )?;
            for (rows, members) in chunks {
                for (row, members) in rows.into_iter().zip(members.chunks_exact(self.size)) {
                    let start = row as usize * self.size;
                    neighbourhoods.members[start..start + self.size].copy_from_slice(members);
                }
            }
            finished += queries.point_count;
        }
        Some(neighbourhoods)
    }

    /// Returns the rows of some points of an arm, and their closed neighbourhoods, row after row.
    fn members_of_points(
        &self,
        points: &Points,
        queries: &Pool,
        targets: &[Target<'_>],
        range: std::ops::Range<usize>,
    ) -> (Vec<u32>, Vec<(f64, u32)>) {
        let results: Vec<Vec<SearchResult>> = targets
            .iter()
            .map(|target| {
                if target.is_alone() {
                    return Vec::new();
                }
                let queries = range
                    .clone()
                    .map(|point| query(points, queries, point, target.count));
                let queries: Vec<Query<'_>> = queries.collect();
                let weight_of = |_, point: usize| Some(target.pool.weight[point]);
                search(
                    target.pool,
                    target.uses_tree,
                    target.filter.as_ref(),
                    &weight_of,
                    |search| search.run(&queries),
                )
            })
            .collect();
        let (mut rows, mut members) = (Vec::new(), Vec::new());
        for (index, point) in range.enumerate() {
            let nearest: Vec<Vec<(f64, u32)>> = targets
                .iter()
                .zip(&results)
                .map(|(target, results)| {
                    let result = results.get(index);
                    result.map_or_else(Vec::new, |result| target.nearest_rows(result))
                })
                .collect();
            for &row in queries.members(point) {
                rows.push(row);
                members.extend(self.members_of_row(row, targets, &nearest));
            }
        }
        (rows, members)
    }

    /// Returns the closed neighbourhood of a row from the nearest rows of each target.
    fn members_of_row(
        &self,
        row: u32,
        targets: &[Target<'_>],
        nearest: &[Vec<(f64, u32)>],
    ) -> Vec<(f64, u32)> {
        let mut members = Vec::with_capacity(self.size);
        members.push((0.0, row));
        for (target, nearest) in targets.iter().zip(nearest) {
            // The pool of all rows comes last, and fills up the neighbourhood.
            let is_own = usize::from(target.is_own_arm);
            let missing = (target.count - is_own).min(self.size - members.len());
            let known = members.clone();
            let is_new = |other: u32| known.iter().all(|&(_, known)| known != other);
            let others = nearest.iter().copied();
            members.extend(others.filter(|&(_, other)| is_new(other)).take(missing));
        }
        members.sort_unstable_by(compare);
        members
    }

    /// Chooses the seeds, and returns the stratum of each row and the seed of each stratum.
    fn grow(&self, points: &Points, neighbourhoods: &Neighbourhoods) -> (Vec<u32>, Vec<u32>) {
        let reach = (self.caliper / 2.0).powi(2);
        let mut stratum = vec![NO_STRATUM; self.arm.len()];
        let mut seeds = Vec::new();
        for candidate in self.seeds_in_order(neighbourhoods, reach) {
            let members = neighbourhoods.of(candidate).iter();
            if members
                .clone()
                .any(|&(_, row)| stratum[row as usize] != NO_STRATUM)
            {
                continue;
            }
            for &(_, row) in members {
                stratum[row as usize] = to_u32(seeds.len());
            }
            seeds.push(candidate);
        }
        let joined: Vec<(u32, u32)> = self
            .targets()
            .filter(|&row| stratum[row as usize] == NO_STRATUM)
            .filter_map(|row| {
                let members = neighbourhoods.of(row).iter();
                let labels = members.map(|&(_, member)| stratum[member as usize]);
                let mut labels = labels.filter(|&label| label != NO_STRATUM);
                let is_near = |label: u32| {
                    let seed = seeds[label as usize];
                    reach == f64::INFINITY || squared_distance(points, row, seed) <= reach
                };
                labels
                    .find(|&label| is_near(label))
                    .map(|label| (row, label))
            })
            .collect();
        for (row, label) in joined {
            stratum[row as usize] = label;
        }
        (stratum, seeds)
    }

    /// Returns the rows that may be seeds. Rows whose neighbourhoods overlap few others come first,
    /// so that there are many seeds and the strata are small. Distances decide between rows with
    /// the same number, so that the order of the rows does not matter.
    fn seeds_in_order(&self, neighbourhoods: &Neighbourhoods, reach: f64) -> Vec<u32> {
        let may_be_seed = |&row: &u32| neighbourhoods.squared_radius(row) <= reach;
        let mut counts = vec![0_u32; self.arm.len()];
        for row in self.targets().filter(may_be_seed) {
            for &(_, member) in neighbourhoods.of(row) {
                counts[member as usize] += 1;
            }
        }
        let key = |row: u32| {
            let members = neighbourhoods.of(row).iter();
            let overlaps = members.map(|&(_, member)| u64::from(counts[member as usize]));
            (overlaps.sum::<u64>(), row)
        };
        let mut keys: Vec<(u64, u32)> = self.targets().filter(may_be_seed).map(key).collect();
        keys.sort_unstable_by(|left, right| {
            let distances = |row: u32| {
                neighbourhoods
                    .of(row)
                    .iter()
                    .rev()
                    .map(|&(square, _)| square)
            };
            let by_distance = || distances(left.1).partial_cmp(distances(right.1));
            let order = left.0.cmp(&right.0);
            let order = order.then_with(|| by_distance().expect("distances are numbers"));
            order.then(left.1.cmp(&right.1))
        });
        keys.into_iter().map(|(_, row)| row).collect()
    }
}

/// Whether a tree is faster than brute force for the searches of a pool in another.
fn prefers_tree(points: &Points, queries: &Pool, pool: &Pool, count: usize) -> bool {
    let comparisons = queries.point_count * pool.block_count();
    if pool.tree.is_empty() || comparisons < MIN_BLOCK_COMPARISONS {
        return false;
    }
    let trial = Search::trial_points(queries.point_count)
        .map(|point| query(points, queries, point, count))
        .collect::<Vec<_>>();
    let (tree, brute_force) = search(
        pool,
        true,
        None,
        &|_, point| Some(pool.weight[point]),
        |search| search.costs(&trial),
    );
    tree < brute_force
}

/// A pool in which the rows of an arm search.
struct Target<'a> {
    pool: &'a Pool,
    /// Number of rows to find, with the row that searches if it is in the pool.
    count: usize,
    /// Whether the pool is the arm that searches.
    is_own_arm: bool,
    uses_tree: bool,
    /// A copy of the pool for the search by tree.
    filter: Option<Filter>,
}

impl Target<'_> {
    /// Whether the row that searches is the only row to find.
    fn is_alone(&self) -> bool {
        self.is_own_arm && self.count == 1
    }

    /// Returns the nearest rows of a result, the nearest first, then in the order of the rows.
    fn nearest_rows(&self, result: &SearchResult) -> Vec<(f64, u32)> {
        let mut rows = Vec::with_capacity(self.count);
        for &(squared, point) in &result.neighbours {
            let members = self.pool.members(point as usize).iter().take(self.count);
            rows.extend(members.map(|&row| (squared, row)));
        }
        rows.sort_unstable_by(compare);
        rows.truncate(self.count);
        rows
    }
}

fn compare(left: &(f64, u32), right: &(f64, u32)) -> std::cmp::Ordering {
    left.0.total_cmp(&right.0).then(left.1.cmp(&right.1))
}

/// Calls `work` with a search of a pool.
fn search<'a, T>(
    pool: &'a Pool,
    uses_tree: bool,
    filter: Option<&'a Filter>,
    weight_of: &'a crate::neighbours::WeightOf<'a>,
    work: impl FnOnce(&Search<'a>) -> T,
) -> T {
    work(&Search {
        pool,
        weight_of,
        uses_tree,
        filter,
        in_packets: false,
        instructions: Instructions::best(),
    })
}

/// Returns the query for the nearest `count` rows of a point of a pool.
fn query<'a>(points: &'a Points, pool: &Pool, point: usize, count: usize) -> Query<'a> {
    Query {
        point,
        coordinates: points.row(pool.members(point)[0] as usize),
        calipers: Vec::new(),
        needed_weight: count as f64 - WEIGHT_ROUNDING,
        tolerance: 0.0,
        fixed_distances: Vec::new(),
        forbidden: Vec::new(),
    }
}

fn squared_distance(points: &Points, first: u32, second: u32) -> f64 {
    let (first, second) = (points.row(first as usize), points.row(second as usize));
    let differences = first.iter().zip(second).map(|(left, right)| left - right);
    differences.map(|difference| difference * difference).sum()
}

/// Numbers the strata by their first rows.
fn in_order_of_first_rows(stratum: &[u32], count: usize) -> Vec<Option<u32>> {
    let mut numbers = vec![NO_STRATUM; count];
    let mut next = 0;
    stratum
        .iter()
        .map(|&label| {
            if label == NO_STRATUM {
                return None;
            }
            let number = &mut numbers[label as usize];
            if *number == NO_STRATUM {
                *number = next;
                next += 1;
            }
            Some(*number)
        })
        .collect()
}
