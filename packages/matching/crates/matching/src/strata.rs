//! Matching inside strata: groups of rows that are matched separately, in one pass.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::matcher::Matcher;
use crate::parallel::{Progress, parallel_map, thread_count};
use crate::problem::{Pairs, Problem};
use crate::random::mix;

/// Number of strata that a thread takes from the work list together.
const STRATA_CHUNK: usize = 8;

/// The strata of the rows, and their calipers.
pub struct Strata<'a> {
    /// Index of each row's stratum.
    pub stratum_of_row: &'a [usize],
    /// Number of strata.
    pub count: usize,
    /// Caliper of each column, stratum after stratum.
    pub calipers: Option<&'a [f64]>,
}

/// Outcomes whose variances are estimated from neighbours.
pub struct Outcomes<'a> {
    /// Outcome of each row.
    pub values: &'a [f64],
    /// Number of neighbours from which a variance is estimated; a small stratum has fewer.
    pub neighbours: f64,
}

/// The pairs of all strata, in the order of the rows.
pub struct StrataResult {
    /// Pairs of all strata; units of a stratum that lacks an arm are dropped.
    pub pairs: Pairs,
    /// Variance of each row's outcome; empty if no outcomes were given.
    pub variances: Vec<Option<f64>>,
}

/// The result of one stratum, with row numbers of the whole problem.
struct StratumResult {
    pairs: Pairs,
    variances: Vec<(usize, Option<f64>)>,
}

impl Strata<'_> {
    /// Matches inside each stratum; `None` if `progress` stops the work. `progress` gets the
    /// numbers of finished and of all rows. Columns are scaled separately in each stratum. The
    /// caliper of the problem is not used.
    #[must_use]
    pub fn match_all(
        &self,
        problem: &Problem,
        outcomes: Option<&Outcomes<'_>>,
        progress: &Progress<'_>,
    ) -> Option<StrataResult> {
        let mut rows = vec![Vec::new(); self.count];
        for (row, &stratum) in self.stratum_of_row.iter().enumerate() {
            rows[stratum].push(row);
        }
        let total = problem.rows();
        let threads = thread_count(problem.threads);
        // If a stratum has more rows than the share of one thread, all threads work on it.
        let (large, small): (Vec<usize>, Vec<usize>) =
            (0..self.count).partition(|&stratum| rows[stratum].len() * threads > total);
        let mut results = Vec::with_capacity(self.count);
        let mut finished = 0;
        for stratum in large {
            let size = rows[stratum].len();
            let report =
                |done: usize, all: usize| progress(finished + done * size / all.max(1), total);
            let rows = &rows[stratum];
            results.push(self.match_stratum(problem, outcomes, stratum, rows, threads, &report)?);
            finished += size;
        }
        let finished_rows = AtomicUsize::new(finished);
        let report = |_: usize, _: usize| progress(finished_rows.load(Ordering::Relaxed), total);
        let chunks = parallel_map(threads, small.len(), STRATA_CHUNK, &report, |range| {
            let results = small[range].iter().map(|&stratum| {
                let rows = &rows[stratum];
                let result = self.match_stratum(problem, outcomes, stratum, rows, 1, &|_, _| true);
                finished_rows.fetch_add(rows.len(), Ordering::Relaxed);
                result
            });
            results.collect::<Vec<Option<StratumResult>>>()
        })?;
        results.extend(chunks.into_iter().flatten().flatten());
        Some(combine(results, outcomes.map_or(0, |_| total)))
    }

    /// Matches the units of one stratum. If an arm has no weight, all units to match are dropped.
    fn match_stratum(
        &self,
        problem: &Problem,
        outcomes: Option<&Outcomes<'_>>,
        stratum: usize,
        rows: &[usize],
        threads: usize,
        progress: &Progress<'_>,
    ) -> Option<StratumResult> {
        let mut arm_weights = [0.0; 2];
        let mut arm_units = [0; 2];
        for &row in rows {
            arm_weights[usize::from(problem.treated[row])] += problem.weight(row);
            arm_units[usize::from(problem.treated[row])] += 1;
        }
        let is_matched = |row: &usize| problem.estimand.matches_arm(problem.treated[*row]);
        if arm_weights[0] <= 0.0 || arm_weights[1] <= 0.0 {
            let pairs = Pairs {
                dropped: rows.iter().copied().filter(is_matched).collect(),
                ..Pairs::default()
            };
            let variances = Vec::new();
            return Some(StratumResult { pairs, variances });
        }
        let arms = problem.estimand.matched_arms().into_iter();
        let fewest_targets = arms.map(|arm| arm_units[usize::from(!arm)]).min();
        let row_of = |&row: &usize| &problem.x[row * problem.columns..(row + 1) * problem.columns];
        let stratum_problem = Problem {
            x: rows.iter().flat_map(row_of).copied().collect(),
            columns: problem.columns,
            treated: rows.iter().map(|&row| problem.treated[row]).collect(),
            weights: problem
                .weights
                .as_ref()
                .map(|weights| rows.iter().map(|&row| weights[row]).collect()),
            estimand: problem.estimand,
            matches: problem.matches.min(fewest_targets.unwrap_or(0)),
            metric: problem.metric.clone(),
            caliper: self.calipers.map(|calipers| {
                calipers[stratum * problem.columns..(stratum + 1) * problem.columns].to_vec()
            }),
            restrictions: Vec::new(),
            replace: problem.replace,
            ties: problem.ties,
            tolerance: problem.tolerance,
            rules: problem.rules,
            threads,
            // Random draws depend on the index in the stratum, so each stratum needs its own seed.
            seed: mix(problem.seed ^ mix(rows[0] as u64)),
            method: problem.method,
        };
        let matcher = Matcher::new(stratum_problem);
        let mut pairs = matcher.pairs(progress)?;
        let mut variances = Vec::new();
        if let Some(outcomes) = outcomes {
            let values: Vec<f64> = rows.iter().map(|&row| outcomes.values[row]).collect();
            let report = |_: usize, all: usize| progress(all, all);
            let estimates = matcher.variances(&values, &pairs, outcomes.neighbours, &report)?;
            variances = rows.iter().copied().zip(estimates).collect();
        }
        for indices in [&mut pairs.query, &mut pairs.matched, &mut pairs.dropped] {
            for index in indices {
                *index = rows[*index];
            }
        }
        Some(StratumResult { pairs, variances })
    }
}

fn combine(results: Vec<StratumResult>, rows_with_variances: usize) -> StrataResult {
    let mut pairs = Vec::with_capacity(results.iter().map(|result| result.pairs.query.len()).sum());
    let mut dropped = Vec::new();
    let mut variances = vec![None; rows_with_variances];
    for result in results {
        pairs.extend(result.pairs.iter());
        dropped.extend(result.pairs.dropped);
        for (row, variance) in result.variances {
            variances[row] = variance;
        }
    }
    pairs.sort_unstable_by_key(|&(query, matched, _)| (query, matched));
    dropped.sort_unstable();
    StrataResult {
        pairs: Pairs {
            query: pairs.iter().map(|&(query, _, _)| query).collect(),
            matched: pairs.iter().map(|&(_, matched, _)| matched).collect(),
            weight: pairs.iter().map(|&(_, _, weight)| weight).collect(),
            dropped,
        },
        variances,
    }
}
