//! Fitness of the candidates of a genetic search. A candidate has a weight for each covariate. The
//! fitness of a candidate is the balance after matching by these weights.
//!
//! Rows with equal values are one point (`units`). The search finds the neighbours of each point
//! (`links` and below). A link is all pairs between the rows of two points. A judge computes the
//! criteria, one or more numbers for the balance, from the links (`judge` and below).
//!
//! `docs/methods/genetic-matching.md` has the formulae and the differences from R's `GenMatch`.

mod blocks;
mod covariates;
mod distributions;
mod judge;
pub mod kolmogorov;
mod links;
mod moments;
mod nearest;
pub mod options;
mod scan;
mod several;
mod units;

use crate::matcher::Matcher;
use crate::parallel::{Progress, parallel_map, thread_count};
use crate::problem::{Metric, Pairs, Problem, Rules};
use covariates::Covariates;
use judge::Judge;
use links::{Link, Linker, Workspace};
use options::Options;
use units::Units;

/// R's `sqrt(.Machine$double.eps)`: added to all weights if one of them is smaller.
const R_TOLERANCE: f64 = 1.490_116_119_384_765_6e-8;
/// Number of chunks of work for each thread, so that no thread waits long for another.
const CHUNKS_PER_THREAD: usize = 4;

/// Computes the fitness of candidates. Values that do not depend on the weights are computed once.
pub struct Fitness {
    options: Options,
    units: Units,
    covariates: Covariates,
    linker: Linker,
}

impl Fitness {
    /// Finds equal rows, the ranks of the covariates, and a first guess of the neighbours.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let units = Units::new(&options);
        let covariates = Covariates::new(&options, &units);
        let linker = Linker::new(&options.problem, &units, options.instructions);
        Self {
            options,
            units,
            covariates,
            linker,
        }
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the criteria of all candidates, one candidate after another; `None` if `progress`
    /// stops the work. `progress` gets the numbers of finished and of all candidates. `candidates`
    /// has the weights of one candidate after another; each weight is 0 or more.
    #[must_use]
    pub fn evaluate(&self, candidates: &[f64], progress: &Progress<'_>) -> Option<Vec<f64>> {
        let columns = self.units.columns;
        let total = candidates.len() / columns;
        let threads = thread_count(self.options.problem.threads);
        let chunk_size = total.div_ceil(threads * CHUNKS_PER_THREAD).max(1);
        let chunks = parallel_map(threads, total, chunk_size, progress, |range| {
            let mut workspace = Workspace::default();
            let mut judge = Judge::default();
            let mut criteria = Vec::with_capacity(range.len() * self.options.criterion_count());
            for weights in
                candidates[range.start * columns..range.end * columns].chunks_exact(columns)
            {
                self.append_criteria(weights, &mut workspace, &mut judge, &mut criteria);
            }
            criteria
        })?;
        Some(chunks.concat())
    }

    /// Returns the pairs of matching by one candidate; `None` if `progress` stops the work.
    #[must_use]
    pub fn pairs(&self, weights: &[f64], progress: &Progress<'_>) -> Option<Pairs> {
        let problem = self.problem(weights, self.options.problem.threads);
        Matcher::with_instructions(problem, self.options.instructions).pairs(progress)
    }

    fn append_criteria(
        &self,
        weights: &[f64],
        workspace: &mut Workspace,
        judge: &mut Judge,
        output: &mut Vec<f64>,
    ) {
        let (options, covariates) = (&self.options, &self.covariates);
        judge.start(covariates, self.units.points());
        if self.matches_rows_alike() {
            let weights = self.effective_weights(weights);
            let mut add_links = |links: &[Link]| judge.add(options, covariates, links);
            let (problem, units) = (&options.problem, &self.units);
            self.linker
                .search(problem, units, &weights, workspace, &mut add_links);
        } else {
            let problem = self.problem(weights, 1);
            let matcher = Matcher::with_instructions(problem, options.instructions);
            let pairs = matcher.pairs(&|_, _| true).unwrap_or_default();
            judge.add(options, covariates, &self.links(&pairs));
        }
        judge.finish(options, covariates, self.units.controls, output);
    }

    /// Whether equal rows get equal matches: no option names single rows or draws at random.
    fn matches_rows_alike(&self) -> bool {
        let problem = &self.options.problem;
        problem.replace && problem.ties && problem.restrictions.is_empty()
    }

    /// Returns the weights of the distance. R adds a small number if a weight is nearly 0.
    fn effective_weights(&self, weights: &[f64]) -> Vec<f64> {
        let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        let as_in_r = self.options.problem.rules == Rules::AsInR;
        let added = if as_in_r && smallest < R_TOLERANCE {
            R_TOLERANCE
        } else {
            0.0
        };
        weights.iter().map(|weight| weight + added).collect()
    }

    fn problem(&self, weights: &[f64], threads: usize) -> Problem {
        let columns = self.units.columns;
        let mut matrix = vec![0.0; columns * columns];
        for (column, weight) in weights.iter().enumerate() {
            matrix[column * columns + column] = *weight;
        }
        Problem {
            metric: Metric::Matrix(matrix),
            threads,
            ..self.options.problem.clone()
        }
    }

    fn links(&self, pairs: &Pairs) -> Vec<Link> {
        let point = |row: usize| self.units.point_of_row[row];
        pairs
            .iter()
            .map(|(query, matched, weight)| {
                let (treated, control) = if self.options.problem.treated[query] {
                    (query, matched)
                } else {
                    (matched, query)
                };
                Link {
                    treated: point(treated),
                    control: point(control),
                    weight,
                    count: 1,
                }
            })
            .collect()
    }
}
