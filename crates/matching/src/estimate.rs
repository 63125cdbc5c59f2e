//! The effect and its errors, from the pairs. All is linear in their number.
//!
//! Abadie and Imbens 2006, Econometrica 74(1), sections 2 and 4.

use crate::bias::slopes;
use crate::problem::{Estimand, Pairs, Rules};

/// What an effect is estimated from.
pub struct Sample<'a> {
    /// Whether each row is treated.
    pub treated: &'a [bool],
    /// Of each row.
    pub outcome: &'a [f64],
    /// Of each row.
    pub weights: &'a [f64],
    /// Whose effect is wanted.
    pub estimand: Estimand,
    /// Whose numbers are wanted.
    pub rules: Rules,
    /// Covariates of the bias adjustment, row after row, and how many; none without it.
    pub covariates: Option<(&'a [f64], usize)>,
    /// Variances of the outcomes given the covariates; none if all share one variance.
    pub variances: Option<&'a [Option<f64>]>,
}

/// The effect and its errors, in units of the outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The effect, with the bias adjustment if there is one.
    pub effect: f64,
    /// The effect without it.
    pub unadjusted: f64,
    /// The variance of the effect in the population.
    pub population_variance: f64,
    /// The variance of the effect among these units.
    pub sample_variance: f64,
    /// Of the effect without adjustment, as if the pairs were independent.
    pub standard_error_of_pairs: f64,
    /// What the choice of these units adds to the error.
    pub conditional_error: f64,
}

/// How often each unit serves.
struct Service {
    /// K of Abadie and Imbens.
    total: Vec<f64>,
    /// K' of Abadie and Imbens: the sum of the squares of its shares.
    squares: Vec<f64>,
}

impl Sample<'_> {
    /// The effect and its errors. There must be a pair.
    #[must_use]
    pub fn estimate(&self, pairs: &Pairs) -> Estimate {
        let service = self.service(pairs);
        let plain = self.differences(pairs);
        let differences = self.adjusted(pairs, &plain, &service);
        let total: f64 = pairs.weight.iter().sum();
        let mean = |values: &[f64]| {
            let sum: f64 = values
                .iter()
                .zip(&pairs.weight)
                .map(|(value, weight)| value * weight)
                .sum();
            sum / total
        };
        let effect = mean(&differences);
        let around = |values: &[f64], centre: f64| -> f64 {
            values
                .iter()
                .zip(&pairs.weight)
                .map(|(value, weight)| weight * (value - centre).powi(2))
                .sum()
        };
        let common = 0.5 * around(&differences, effect) / total;
        let unadjusted = mean(&plain);
        let spread_of_pairs = around(&plain, unadjusted);
        let (population, sample) = self.variance(pairs, &differences, &service, effect, common);
        Estimate {
            effect,
            unadjusted,
            population_variance: population,
            sample_variance: sample,
            standard_error_of_pairs: spread_of_pairs.sqrt() / total,
            conditional_error: (population.max(sample) - sample).sqrt(),
        }
    }

    fn service(&self, pairs: &Pairs) -> Service {
        let mut service = Service {
            total: vec![0.0; self.treated.len()],
            squares: vec![0.0; self.treated.len()],
        };
        for ((&query, &matched), &weight) in
            pairs.query.iter().zip(&pairs.matched).zip(&pairs.weight)
        {
            service.total[matched] += weight;
            if weight > 0.0 {
                service.squares[matched] += weight * weight / self.weights[query];
            }
        }
        service
    }

    fn sign(&self, query: usize) -> f64 {
        if self.treated[query] { 1.0 } else { -1.0 }
    }

    /// Treated less control, of each pair.
    fn differences(&self, pairs: &Pairs) -> Vec<f64> {
        pairs
            .query
            .iter()
            .zip(&pairs.matched)
            .map(|(&query, &matched)| {
                self.sign(query) * (self.outcome[query] - self.outcome[matched])
            })
            .collect()
    }

    /// The match's outcome moves along the slopes of its arm to the covariates of the query.
    fn adjusted(&self, pairs: &Pairs, plain: &[f64], service: &Service) -> Vec<f64> {
        let Some((covariates, columns)) = self.covariates else {
            return plain.to_vec();
        };
        let slopes = [false, true].map(|arm| {
            let weights: Vec<f64> = service
                .total
                .iter()
                .zip(self.treated)
                .map(|(&total, &treated)| if treated == arm { total } else { 0.0 })
                .collect();
            slopes(covariates, columns, self.outcome, &weights)
        });
        pairs
            .query
            .iter()
            .zip(&pairs.matched)
            .zip(plain)
            .map(|((&query, &matched), difference)| {
                let bias: f64 = slopes[usize::from(self.treated[matched])]
                    .iter()
                    .enumerate()
                    .map(|(column, slope)| {
                        let apart = covariates[query * columns + column]
                            - covariates[matched * columns + column];
                        slope * apart
                    })
                    .sum();
                difference - self.sign(query) * bias
            })
            .collect()
    }

    /// Variances in the population and among these units (Theorems 6 and 7).
    fn variance(
        &self,
        pairs: &Pairs,
        differences: &[f64],
        service: &Service,
        effect: f64,
        common: f64,
    ) -> (f64, f64) {
        let rows = self.treated.len();
        let mut sums = vec![0.0; rows];
        let mut shares = vec![0.0; rows];
        let mut was_matched = vec![false; rows];
        for ((&query, &weight), &difference) in
            pairs.query.iter().zip(&pairs.weight).zip(differences)
        {
            sums[query] += weight * difference;
            shares[query] += weight;
            was_matched[query] = true;
        }
        // R counts units without a match as if their effect had been found to be 0.
        let counts = |row: usize| {
            self.estimand.queries(self.treated[row])
                && (was_matched[row] || self.rules == Rules::AsInR)
        };
        let (mut total, mut population, mut sample) = (0.0, 0.0, 0.0);
        for row in 0..rows {
            let queried = if counts(row) { self.weights[row] } else { 0.0 };
            let (served, squares) = if self.estimand.serves(self.treated[row]) {
                (service.total[row], service.squares[row])
            } else {
                (0.0, 0.0)
            };
            let variance = self
                .variances
                .map_or(common, |variances| variances[row].unwrap_or(common));
            total += queried;
            sample += variance * (queried + served).powi(2);
            let twice = if counts(row) { 2.0 * served } else { 0.0 };
            population += variance * (served * served + twice - squares);
            if counts(row) {
                let own = if shares[row] > 0.0 {
                    sums[row] / shares[row]
                } else {
                    0.0
                };
                population += queried * (own - effect).powi(2);
            }
        }
        let squared = total * total;
        ((population / squared).max(0.0), sample / squared)
    }
}
