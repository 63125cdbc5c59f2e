//! Computes the criteria of a candidate from its links: p-values of tests, or distances between
//! distributions. A candidate without matches gets the worst criteria.

use crate::fitness::covariates::Covariates;
use crate::fitness::distributions::{Distributions, bootstrap_p_values, median};
use crate::fitness::links::Link;
use crate::fitness::moments::{Differences, welch};
use crate::fitness::options::{AcrossColumns, Loss, Measure, Options};

/// Number that replaces a p-value that is NaN, as in R.
const NAN_P_VALUE: f64 = 2.0;
/// Every criterion without a matched unit; the negative number if larger criteria are better.
const UNMATCHED_CRITERION: f64 = 9999.0;
/// Largest relative rounding error of a total weight that is a whole number.
const WHOLE_NUMBER_TOLERANCE: f64 = 1e-9;

/// Computes the criteria of one candidate after another; each thread has a `Judge` of its own.
#[derive(Default)]
pub struct Judge {
    /// Differences within the pairs, for paired t-tests.
    differences: Differences,
    distributions: Distributions,
    /// Total weight of the pairs of each point, for unpaired t-tests.
    point_weights: Vec<f64>,
    /// Total weight of all pairs.
    matched_weight: f64,
    /// Criteria of the candidate, or the p-values or distances that give them.
    criteria: Vec<f64>,
    ks_p_values: Vec<f64>,
}

impl Judge {
    /// Begins a candidate, before its links are added.
    pub fn start(&mut self, covariates: &Covariates, points: usize) {
        self.differences.start(covariates.stride);
        self.distributions.start(points);
        self.point_weights.clear();
        self.point_weights.resize(points, 0.0);
        self.matched_weight = 0.0;
    }

    pub fn add(&mut self, options: &Options, covariates: &Covariates, links: &[Link]) {
        self.matched_weight += links.iter().map(|link| link.weight).sum::<f64>();
        self.distributions.add(links);
        if !matches!(options.measure, Measure::PValues(_)) {
            return;
        }
        if options.paired {
            self.differences
                .add(covariates, links, options.instructions);
            return;
        }
        for link in links {
            self.point_weights[link.treated as usize] += link.weight;
            self.point_weights[link.control as usize] += link.weight;
        }
    }

    /// Appends the criteria of the candidate to `output`, after all links were added.
    pub fn finish(
        &mut self,
        options: &Options,
        covariates: &Covariates,
        controls: usize,
        output: &mut Vec<f64>,
    ) {
        if self.distributions.pairs == 0 {
            let worst = match options.measure {
                Measure::PValues(_) => -UNMATCHED_CRITERION,
                Measure::Distance(_, _) => UNMATCHED_CRITERION,
            };
            output.extend(std::iter::repeat_n(worst, options.criterion_count()));
            return;
        }
        let whole_number = self.matched_weight.round();
        if (self.matched_weight - whole_number).abs() <= WHOLE_NUMBER_TOLERANCE * whole_number {
            self.matched_weight = whole_number;
        }
        if !covariates.ranked_columns.is_empty() {
            self.distributions.compute_steps(covariates, controls);
        }
        self.criteria.clear();
        match options.measure {
            Measure::PValues(loss) => {
                self.compute_p_values(options, covariates, controls);
                match loss {
                    Loss::Unsorted => {}
                    Loss::Sorted => self.criteria.sort_unstable_by(f64::total_cmp),
                    Loss::Smallest => {
                        let smallest = self.criteria.iter().copied().fold(f64::INFINITY, f64::min);
                        self.criteria.clear();
                        self.criteria.push(smallest);
                    }
                }
            }
            Measure::Distance(within, across) => {
                self.distributions
                    .distances(covariates, within, &mut self.criteria);
                let criteria = &mut self.criteria;
                match across {
                    AcrossColumns::Mean => {
                        let mean = criteria.iter().sum::<f64>() / criteria.len() as f64;
                        criteria.clear();
                        criteria.push(mean);
                    }
                    AcrossColumns::Median => {
                        let middle = median(criteria);
                        criteria.clear();
                        criteria.push(middle);
                    }
                    AcrossColumns::Descending => {
                        criteria.sort_unstable_by(|left, right| right.total_cmp(left));
                    }
                }
            }
        }
        output.extend_from_slice(&self.criteria);
    }

    /// Computes the p-values of the t-tests, then of the Kolmogorov-Smirnov tests.
    fn compute_p_values(&mut self, options: &Options, covariates: &Covariates, controls: usize) {
        let columns = covariates.columns;
        if options.paired {
            self.differences
                .p_values(columns, self.matched_weight, &mut self.criteria);
        } else {
            welch(
                covariates,
                controls,
                &self.point_weights,
                self.matched_weight,
                options.problem.rules,
                &mut self.criteria,
            );
        }
        if options.kolmogorov_smirnov {
            self.ks_p_values.clear();
            if options.boot > 0 {
                bootstrap_p_values(
                    &self.distributions,
                    covariates,
                    options.boot,
                    options.problem.seed,
                    &mut self.ks_p_values,
                );
            } else {
                self.distributions
                    .p_values(covariates, &mut self.ks_p_values);
            }
            // A column without a Kolmogorov-Smirnov test repeats the p-value of its t-test.
            self.criteria.extend_from_within(..);
            for (&column, &p_value) in covariates.ranked_columns.iter().zip(&self.ks_p_values) {
                self.criteria[columns + column] = p_value;
            }
        }
        for p_value in &mut self.criteria {
            if p_value.is_nan() {
                *p_value = NAN_P_VALUE;
            }
        }
    }
}
