//! From links to the numbers that judge a candidate.

use crate::fitness::covariates::Covariates;
use crate::fitness::distributions::{Distributions, bootstrap_p_values, median};
use crate::fitness::links::Link;
use crate::fitness::moments::{Differences, welch};
use crate::fitness::options::{Across, Loss, Measure, Options};

/// Value of a p-value that is not a number, as in R.
const NOT_A_NUMBER: f64 = 2.0;
/// Value of every criterion when no unit is matched; negative where larger is better.
const NOBODY_MATCHED: f64 = 9999.0;
/// Sums of shares this near to a whole number count as that number.
const ROUNDING: f64 = 1e-9;

/// Memory of a thread for judging.
#[derive(Default)]
pub struct Judge {
    differences: Differences,
    distributions: Distributions,
    /// Weight of each point's pairs together, for unpaired tests.
    sides: Vec<f64>,
    matched: f64,
    values: Vec<f64>,
    tests: Vec<f64>,
}

impl Judge {
    /// Forgets everything.
    pub fn start(&mut self, covariates: &Covariates, points: usize) {
        self.differences.start(covariates.stride);
        self.distributions.start(points);
        self.sides.clear();
        self.sides.resize(points, 0.0);
        self.matched = 0.0;
    }

    /// Adds links.
    pub fn add(&mut self, options: &Options, covariates: &Covariates, links: &[Link]) {
        self.matched += links.iter().map(|link| link.weight).sum::<f64>();
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
            self.sides[link.treated as usize] += link.weight;
            self.sides[link.control as usize] += link.weight;
        }
    }

    /// The criteria, after the last link.
    pub fn judge(
        &mut self,
        options: &Options,
        covariates: &Covariates,
        controls: usize,
        into: &mut Vec<f64>,
    ) {
        if self.distributions.pairs == 0 {
            let worst = match options.measure {
                Measure::PValues(_) => -NOBODY_MATCHED,
                Measure::Distance(_, _) => NOBODY_MATCHED,
            };
            into.extend(std::iter::repeat_n(worst, options.criteria()));
            return;
        }
        let whole = self.matched.round();
        if (self.matched - whole).abs() <= ROUNDING * whole {
            self.matched = whole;
        }
        if !covariates.ranked.is_empty() {
            self.distributions.place(covariates, controls);
        }
        self.values.clear();
        match options.measure {
            Measure::PValues(loss) => {
                self.p_values(options, covariates, controls);
                match loss {
                    Loss::Unsorted => {}
                    Loss::Sorted => self.values.sort_unstable_by(f64::total_cmp),
                    Loss::Smallest => {
                        let smallest = self.values.iter().copied().fold(f64::INFINITY, f64::min);
                        self.values.clear();
                        self.values.push(smallest);
                    }
                }
            }
            Measure::Distance(within, across) => {
                self.distributions
                    .distances(covariates, within, &mut self.values);
                let values = &mut self.values;
                match across {
                    Across::Mean => {
                        let mean = values.iter().sum::<f64>() / values.len() as f64;
                        values.clear();
                        values.push(mean);
                    }
                    Across::Median => {
                        let middle = median(values);
                        values.clear();
                        values.push(middle);
                    }
                    Across::Descending => {
                        values.sort_unstable_by(|left, right| right.total_cmp(left));
                    }
                }
            }
        }
        into.extend_from_slice(&self.values);
    }

    fn p_values(&mut self, options: &Options, covariates: &Covariates, controls: usize) {
        let columns = covariates.columns;
        if options.paired {
            self.differences
                .p_values(columns, self.matched, &mut self.values);
        } else {
            welch(
                covariates,
                controls,
                &self.sides,
                self.matched,
                options.problem.rules,
                &mut self.values,
            );
        }
        if options.kolmogorov_smirnov {
            self.tests.clear();
            if options.boot > 0 {
                bootstrap_p_values(
                    &self.distributions,
                    covariates,
                    options.boot,
                    options.problem.seed,
                    &mut self.tests,
                );
            } else {
                self.distributions.p_values(covariates, &mut self.tests);
            }
            self.values.extend_from_within(..);
            for (&column, &test) in covariates.ranked.iter().zip(&self.tests) {
                self.values[columns + column] = test;
            }
        }
        for value in &mut self.values {
            if value.is_nan() {
                *value = NOT_A_NUMBER;
            }
        }
    }
}
