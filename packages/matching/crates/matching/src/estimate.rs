//! The effect and its errors, from the pairs, in time linear in their number.
//!
//! Abadie and Imbens 2006, Econometrica 74(1), sections 2 and 4; the bias adjustment is that of
//! Abadie and Imbens 2011, Journal of Business & Economic Statistics 29(1), section 2.

use crate::eigen::eigen;
use crate::problem::{Estimand, Pairs, Rules};

/// The data from which an effect is estimated.
pub struct Sample<'a> {
    /// Whether each row is treated.
    pub treated: &'a [bool],
    /// Outcome of each row.
    pub outcome: &'a [f64],
    /// Weight of each row.
    pub weights: &'a [f64],
    /// The units whose effect is estimated.
    pub estimand: Estimand,
    /// The rules to follow where R differs.
    pub rules: Rules,
    /// Covariates of the bias adjustment, row by row, and their number; `None` without it.
    pub covariates: Option<(&'a [f64], usize)>,
    /// Variances of the outcomes given the covariates; `None` if all share one variance.
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
    /// Error of the effect without adjustment, as if the pairs were independent.
    pub standard_error_of_pairs: f64,
    /// Part of the error that comes from the choice of these units.
    pub conditional_error: f64,
}

/// Number of times that each unit serves as a match.
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
        let sum = |values: &[f64], part: &dyn Fn(f64) -> f64| -> f64 {
            let weighted = values.iter().zip(&pairs.weight);
            weighted.map(|(&value, weight)| weight * part(value)).sum()
        };
        let mean = |values: &[f64]| sum(values, &|value| value) / total;
        let around = |values: &[f64], centre: f64| sum(values, &|value| (value - centre).powi(2));
        let effect = mean(&differences);
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
        for (query, matched, weight) in pairs.iter() {
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
        let outcome = self.outcome;
        let difference =
            |(query, matched, _)| self.sign(query) * (outcome[query] - outcome[matched]);
        pairs.iter().map(difference).collect()
    }

    /// The match's outcome moves along the slopes of its arm to the covariates of the query.
    fn adjusted(&self, pairs: &Pairs, plain: &[f64], service: &Service) -> Vec<f64> {
        let Some((covariates, columns)) = self.covariates else {
            return plain.to_vec();
        };
        let slopes = [false, true].map(|arm| {
            let totals = service.total.iter().zip(self.treated);
            let weights: Vec<f64> = totals
                .map(|(&total, &treated)| if treated == arm { total } else { 0.0 })
                .collect();
            slopes(covariates, columns, self.outcome, &weights)
        });
        pairs
            .iter()
            .zip(plain)
            .map(|((query, matched, _), difference)| {
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
        for ((query, _, weight), &difference) in pairs.iter().zip(differences) {
            sums[query] += weight * difference;
            shares[query] += weight;
            was_matched[query] = true;
        }
        // R counts units without a match as if their effect were 0.
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
                let has_share = shares[row] > 0.0;
                let effect_of_row = if has_share {
                    sums[row] / shares[row]
                } else {
                    0.0
                };
                population += queried * (effect_of_row - effect).powi(2);
            }
        }
        let squared = total * total;
        ((population / squared).max(0.0), sample / squared)
    }
}

/// Directions with less than this fraction of the largest variance have no slope.
const NEGLIGIBLE: f64 = 1e-12;

/// Slopes of the outcome on the covariates (row after row) among the rows with a positive
/// weight, by weighted least squares with a constant. Each column is standardised first, so its units
/// do not matter; in directions without variance the slope is 0.
fn slopes(covariates: &[f64], columns: usize, outcome: &[f64], weights: &[f64]) -> Vec<f64> {
    let rows = 0..weights.len();
    let used: Vec<usize> = rows.filter(|&row| weights[row] > 0.0).collect();
    let total: f64 = used.iter().map(|&row| weights[row]).sum();
    if total == 0.0 {
        return vec![0.0; columns];
    }
    let mean_of = |value: &dyn Fn(usize) -> f64| {
        let weighted = used.iter().map(|&row| weights[row] * value(row));
        weighted.sum::<f64>() / total
    };
    let mut means = Vec::with_capacity(columns);
    let mut scales = Vec::with_capacity(columns);
    for column in 0..columns {
        let value = |row: usize| covariates[row * columns + column];
        let mean = mean_of(&value);
        let scale = mean_of(&|row| (value(row) - mean).powi(2)).sqrt();
        let rounding = used.iter().map(|&row| value(row).abs()).fold(0.0, f64::max) * 1e-14;
        means.push(mean);
        scales.push(if scale > rounding { scale } else { 0.0 });
    }
    let mean_outcome = mean_of(&|row| outcome[row]);
    let mut products = vec![0.0; columns * columns];
    let mut with_outcome = vec![0.0; columns];
    let mut standardised = vec![0.0; columns];
    for &row in &used {
        for column in 0..columns {
            standardised[column] = if scales[column] > 0.0 {
                (covariates[row * columns + column] - means[column]) / scales[column]
            } else {
                0.0
            };
        }
        for first in 0..columns {
            let weighted = weights[row] * standardised[first];
            with_outcome[first] += weighted * (outcome[row] - mean_outcome);
            for second in 0..columns {
                products[first * columns + second] += weighted * standardised[second];
            }
        }
    }
    let mut slopes = vec![0.0; columns];
    for (value, vector) in eigen(&products, columns).above(NEGLIGIBLE) {
        let products = vector.iter().zip(&with_outcome);
        let along: f64 = products.map(|(part, with)| part * with).sum();
        for (slope, part) in slopes.iter_mut().zip(vector) {
            *slope += along / value * part;
        }
    }
    for (slope, scale) in slopes.iter_mut().zip(&scales) {
        *slope = if *scale > 0.0 { *slope / scale } else { 0.0 };
    }
    slopes
}
