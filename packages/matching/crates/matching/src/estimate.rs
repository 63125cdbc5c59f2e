//! Estimates the treatment effect and its standard errors from matched pairs, in linear time.
//!
//! Abadie and Imbens 2006, Econometrica 74(1), sections 2 and 4. The bias adjustment is from
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
    /// Whether to compute the correct answer or R's, where these differ.
    pub rules: Rules,
    /// Covariates of the bias adjustment, row after row, and their number; `None` to skip it.
    pub covariates: Option<(&'a [f64], usize)>,
    /// Variance of each outcome given the covariates; `None` if all rows share one variance.
    pub variances: Option<&'a [Option<f64>]>,
}

/// The effect and its errors, in units of the outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The effect, after the bias adjustment if the sample has covariates for it.
    pub effect: f64,
    /// The effect without bias adjustment.
    pub unadjusted: f64,
    /// The variance of the effect in the population.
    pub population_variance: f64,
    /// The variance of the effect for exactly these units.
    pub sample_variance: f64,
    /// Standard error of the unadjusted effect, as if the pairs were independent.
    pub standard_error_of_pairs: f64,
    /// Part of the standard error that comes from the sampling of the units.
    pub conditional_error: f64,
}

/// Weights with which each unit is the match of other units.
struct MatchCounts {
    /// K of Abadie and Imbens: the total weight of the pairs in which a unit is the match.
    total: Vec<f64>,
    /// K' of Abadie and Imbens: Σ w² / v, with the weights w of the pair and v of the other unit.
    squares: Vec<f64>,
}

impl Sample<'_> {
    /// Estimates the effect and its errors. There must be at least one pair.
    #[must_use]
    pub fn estimate(&self, pairs: &Pairs) -> Estimate {
        let match_counts = self.match_counts(pairs);
        let raw_differences = self.differences(pairs);
        let differences = self.adjusted(pairs, &raw_differences, &match_counts);
        let total: f64 = pairs.weight.iter().sum();
        let sum = |values: &[f64], term: &dyn Fn(f64) -> f64| -> f64 {
            let weighted = values.iter().zip(&pairs.weight);
            weighted.map(|(&value, weight)| weight * term(value)).sum()
        };
        let mean = |values: &[f64]| sum(values, &|value| value) / total;
        let squares = |values: &[f64], centre: f64| sum(values, &|value| (value - centre).powi(2));
        let effect = mean(&differences);
        let common_variance = 0.5 * squares(&differences, effect) / total;
        let unadjusted = mean(&raw_differences);
        let squares_of_pairs = squares(&raw_differences, unadjusted);
        let (population, sample) =
            self.effect_variances(pairs, &differences, &match_counts, effect, common_variance);
        Estimate {
            effect,
            unadjusted,
            population_variance: population,
            sample_variance: sample,
            standard_error_of_pairs: squares_of_pairs.sqrt() / total,
            conditional_error: (population.max(sample) - sample).sqrt(),
        }
    }

    fn match_counts(&self, pairs: &Pairs) -> MatchCounts {
        let mut match_counts = MatchCounts {
            total: vec![0.0; self.treated.len()],
            squares: vec![0.0; self.treated.len()],
        };
        for (query, matched, weight) in pairs.iter() {
            match_counts.total[matched] += weight;
            if weight > 0.0 {
                match_counts.squares[matched] += weight * weight / self.weights[query];
            }
        }
        match_counts
    }

    /// Returns the sign with which the outcome of the unit `query` enters the effect.
    fn sign(&self, query: usize) -> f64 {
        if self.treated[query] { 1.0 } else { -1.0 }
    }

    /// Returns the outcome of the treated unit minus the outcome of the control, for each pair.
    fn differences(&self, pairs: &Pairs) -> Vec<f64> {
        let outcome = self.outcome;
        let difference =
            |(query, matched, _)| self.sign(query) * (outcome[query] - outcome[matched]);
        pairs.iter().map(difference).collect()
    }

    /// Returns the differences after the bias adjustment. The slopes move the outcome of each match
    /// to the covariates of the unit `query`.
    fn adjusted(&self, pairs: &Pairs, raw_differences: &[f64], counts: &MatchCounts) -> Vec<f64> {
        let Some((covariates, columns)) = self.covariates else {
            return raw_differences.to_vec();
        };
        let slopes = [false, true].map(|arm| {
            let totals = counts.total.iter().zip(self.treated);
            let weights: Vec<f64> = totals
                .map(|(&total, &treated)| if treated == arm { total } else { 0.0 })
                .collect();
            slopes(covariates, columns, self.outcome, &weights)
        });
        pairs
            .iter()
            .zip(raw_differences)
            .map(|((query, matched, _), difference)| {
                let bias: f64 = slopes[usize::from(self.treated[matched])]
                    .iter()
                    .enumerate()
                    .map(|(column, slope)| {
                        let covariate_difference = covariates[query * columns + column]
                            - covariates[matched * columns + column];
                        slope * covariate_difference
                    })
                    .sum();
                difference - self.sign(query) * bias
            })
            .collect()
    }

    /// Returns the variances in the population and for exactly these units (Theorems 6 and 7).
    fn effect_variances(
        &self,
        pairs: &Pairs,
        differences: &[f64],
        match_counts: &MatchCounts,
        effect: f64,
        common_variance: f64,
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
        // In R, units without a match enter the effect, with an effect of 0.
        let enters = |row: usize| {
            self.estimand.matches_arm(self.treated[row])
                && (was_matched[row] || self.rules == Rules::AsInR)
        };
        let (mut total, mut population, mut sample) = (0.0, 0.0, 0.0);
        for row in 0..rows {
            let own_weight = if enters(row) { self.weights[row] } else { 0.0 };
            let (match_weight, squares) = if self.estimand.takes_matches_from(self.treated[row]) {
                (match_counts.total[row], match_counts.squares[row])
            } else {
                (0.0, 0.0)
            };
            let variance = self.variances.map_or(common_variance, |variances| {
                variances[row].unwrap_or(common_variance)
            });
            total += own_weight;
            sample += variance * (own_weight + match_weight).powi(2);
            let cross_term = if enters(row) { 2.0 * match_weight } else { 0.0 };
            population += variance * (match_weight * match_weight + cross_term - squares);
            if enters(row) {
                let has_share = shares[row] > 0.0;
                let effect_of_row = if has_share {
                    sums[row] / shares[row]
                } else {
                    0.0
                };
                population += own_weight * (effect_of_row - effect).powi(2);
            }
        }
        let squared = total * total;
        ((population / squared).max(0.0), sample / squared)
    }
}

/// A direction has no slope if its variance is below this fraction of the largest variance.
const NEGLIGIBLE_FRACTION: f64 = 1e-12;
/// Relative rounding error of the standard deviation of a constant column.
const CONSTANT_ROUNDING: f64 = 1e-14;

/// Returns the slopes of the outcome on the covariates (row after row), by weighted least squares
/// with a constant. Rows of weight 0 are left out. Each column is standardised first, so that its
/// unit does not matter. In a direction without variance, the slope is 0.
fn slopes(covariates: &[f64], columns: usize, outcome: &[f64], weights: &[f64]) -> Vec<f64> {
    let all_rows = 0..weights.len();
    let rows: Vec<usize> = all_rows.filter(|&row| weights[row] > 0.0).collect();
    let total: f64 = rows.iter().map(|&row| weights[row]).sum();
    if total == 0.0 {
        return vec![0.0; columns];
    }
    let mean_of = |value: &dyn Fn(usize) -> f64| {
        let weighted = rows.iter().map(|&row| weights[row] * value(row));
        weighted.sum::<f64>() / total
    };
    let mut means = Vec::with_capacity(columns);
    let mut scales = Vec::with_capacity(columns);
    for column in 0..columns {
        let value = |row: usize| covariates[row * columns + column];
        let mean = mean_of(&value);
        let scale = mean_of(&|row| (value(row) - mean).powi(2)).sqrt();
        let largest = rows.iter().map(|&row| value(row).abs()).fold(0.0, f64::max);
        let rounding = largest * CONSTANT_ROUNDING;
        means.push(mean);
        scales.push(if scale > rounding { scale } else { 0.0 });
    }
    let mean_outcome = mean_of(&|row| outcome[row]);
    let mut products = vec![0.0; columns * columns];
    let mut outcome_products = vec![0.0; columns];
    let mut standardised = vec![0.0; columns];
    for &row in &rows {
        for column in 0..columns {
            standardised[column] = if scales[column] > 0.0 {
                (covariates[row * columns + column] - means[column]) / scales[column]
            } else {
                0.0
            };
        }
        for first in 0..columns {
            let weighted = weights[row] * standardised[first];
            outcome_products[first] += weighted * (outcome[row] - mean_outcome);
            for second in 0..columns {
                products[first * columns + second] += weighted * standardised[second];
            }
        }
    }
    let mut slopes = vec![0.0; columns];
    for (eigenvalue, vector) in eigen(&products, columns).above(NEGLIGIBLE_FRACTION) {
        let products = vector.iter().zip(&outcome_products);
        let projection: f64 = products.map(|(entry, product)| entry * product).sum();
        for (slope, entry) in slopes.iter_mut().zip(vector) {
            *slope += projection / eigenvalue * entry;
        }
    }
    for (slope, scale) in slopes.iter_mut().zip(&scales) {
        *slope = if *scale > 0.0 { *slope / scale } else { 0.0 };
    }
    slopes
}
