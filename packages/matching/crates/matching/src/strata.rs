//! Matching inside each of many strata, in one pass.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::matcher::Matcher;
use crate::parallel::{Progress, how_many, in_parallel};
use crate::problem::{Pairs, Problem};
use crate::random::mix;

/// Strata that a thread takes at once.
const AT_ONCE: usize = 8;

/// The rows of each stratum, and its settings.
pub struct Strata<'a> {
    /// The stratum of each row, from 0.
    pub of_row: &'a [usize],
    /// Number of strata.
    pub count: usize,
    /// The caliper of each column, stratum after stratum.
    pub calipers: Option<&'a [f64]>,
}

/// Outcomes whose variances are estimated from neighbours.
pub struct Outcomes<'a> {
    /// Outcome of each row.
    pub values: &'a [f64],
    /// Number of neighbours, if a stratum has that many.
    pub neighbours: f64,
}

/// The pairs of all strata, in the order of the rows.
pub struct Matched {
    /// Units of a stratum that lacks an arm are dropped.
    pub pairs: Pairs,
    /// Variance of each row's outcome; empty without outcomes.
    pub variances: Vec<Option<f64>>,
}

/// One stratum's part of the result, with row numbers of the whole.
struct Part {
    pairs: Pairs,
    variances: Vec<(usize, Option<f64>)>,
}

impl Strata<'_> {
    /// Matches inside each stratum; columns are scaled separately in each. The caliper of the
    /// problem is not used. `None` if `progress`, which gets the numbers of finished and of all
    /// rows, stops.
    #[must_use]
    pub fn matched(
        &self,
        problem: &Problem,
        outcomes: Option<&Outcomes<'_>>,
        progress: &Progress<'_>,
    ) -> Option<Matched> {
        let mut rows = vec![Vec::new(); self.count];
        for (row, &stratum) in self.of_row.iter().enumerate() {
            rows[stratum].push(row);
        }
        let total = problem.rows();
        let threads = how_many(problem.threads);
        // A stratum that would keep one thread busy longer than the others is shared by all
        // threads.
        let (large, small): (Vec<usize>, Vec<usize>) =
            (0..self.count).partition(|&stratum| rows[stratum].len() * threads > total);
        let mut parts = Vec::with_capacity(self.count);
        let mut before = 0;
        for stratum in large {
            let size = rows[stratum].len();
            let report = |done: usize, of: usize| progress(before + done * size / of.max(1), total);
            parts.push(self.part(problem, outcomes, stratum, &rows[stratum], threads, &report)?);
            before += size;
        }
        let done = AtomicUsize::new(before);
        let goes_on = |_: usize, _: usize| progress(done.load(Ordering::Relaxed), total);
        let chunks = in_parallel(threads, small.len(), AT_ONCE, &goes_on, |range| {
            let parts = small[range].iter().map(|&stratum| {
                let rows = &rows[stratum];
                let part = self.part(problem, outcomes, stratum, rows, 1, &|_, _| true);
                done.fetch_add(rows.len(), Ordering::Relaxed);
                part
            });
            parts.collect::<Vec<Option<Part>>>()
        })?;
        parts.extend(chunks.into_iter().flatten().flatten());
        Some(together(parts, outcomes.map_or(0, |_| total)))
    }

    fn part(
        &self,
        whole: &Problem,
        outcomes: Option<&Outcomes<'_>>,
        stratum: usize,
        rows: &[usize],
        threads: usize,
        progress: &Progress<'_>,
    ) -> Option<Part> {
        let mut weighs = [0.0; 2];
        let mut units = [0; 2];
        for &row in rows {
            weighs[usize::from(whole.treated[row])] += whole.weight(row);
            units[usize::from(whole.treated[row])] += 1;
        }
        let asks = |row: &usize| whole.estimand.queries(whole.treated[*row]);
        if weighs[0] <= 0.0 || weighs[1] <= 0.0 {
            let pairs = Pairs {
                dropped: rows.iter().copied().filter(asks).collect(),
                ..Pairs::default()
            };
            let variances = Vec::new();
            return Some(Part { pairs, variances });
        }
        let served = whole.estimand.arms().into_iter();
        let fewest = served.map(|arm| units[usize::from(!arm)]).min();
        let row_of = |&row: &usize| &whole.x[row * whole.columns..(row + 1) * whole.columns];
        let problem = Problem {
            x: rows.iter().flat_map(row_of).copied().collect(),
            columns: whole.columns,
            treated: rows.iter().map(|&row| whole.treated[row]).collect(),
            weights: whole
                .weights
                .as_ref()
                .map(|weights| rows.iter().map(|&row| weights[row]).collect()),
            estimand: whole.estimand,
            matches: whole.matches.min(fewest.unwrap_or(0)),
            metric: whole.metric.clone(),
            caliper: self.calipers.map(|calipers| {
                calipers[stratum * whole.columns..(stratum + 1) * whole.columns].to_vec()
            }),
            restrictions: Vec::new(),
            replace: whole.replace,
            ties: whole.ties,
            tolerance: whole.tolerance,
            rules: whole.rules,
            threads,
            // Units draw by their place in the stratum, so each stratum needs a separate seed.
            seed: mix(whole.seed ^ mix(rows[0] as u64)),
            method: whole.method,
        };
        let matcher = Matcher::new(problem);
        let mut pairs = matcher.pairs(progress)?;
        let mut variances = Vec::new();
        if let Some(outcomes) = outcomes {
            let values: Vec<f64> = rows.iter().map(|&row| outcomes.values[row]).collect();
            let report = |_: usize, of: usize| progress(of, of);
            let estimates = matcher.variances(&values, &pairs, outcomes.neighbours, &report)?;
            variances = rows.iter().copied().zip(estimates).collect();
        }
        for indices in [&mut pairs.query, &mut pairs.matched, &mut pairs.dropped] {
            for index in indices {
                *index = rows[*index];
            }
        }
        Some(Part { pairs, variances })
    }
}

/// Combines the parts, in the order of the rows.
fn together(parts: Vec<Part>, rows_with_variances: usize) -> Matched {
    let mut pairs = Vec::with_capacity(parts.iter().map(|part| part.pairs.query.len()).sum());
    let mut dropped = Vec::new();
    let mut variances = vec![None; rows_with_variances];
    for part in parts {
        pairs.extend(part.pairs.iter());
        dropped.extend(part.pairs.dropped);
        for (row, variance) in part.variances {
            variances[row] = variance;
        }
    }
    pairs.sort_unstable_by_key(|&(query, matched, _)| (query, matched));
    dropped.sort_unstable();
    Matched {
        pairs: Pairs {
            query: pairs.iter().map(|pair| pair.0).collect(),
            matched: pairs.iter().map(|pair| pair.1).collect(),
            weight: pairs.iter().map(|pair| pair.2).collect(),
            dropped,
        },
        variances,
    }
}
