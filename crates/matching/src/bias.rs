//! How much of a pair's difference its remaining difference in covariates explains.
//!
//! Abadie and Imbens 2011, Journal of Business & Economic Statistics 29(1), section 2.

use crate::eigen::eigen;

/// Directions with less than this share of the largest variance have no slope.
const NEGLIGIBLE: f64 = 1e-12;

/// Slopes of the outcome on the covariates (row after row) among the rows with a positive
/// weight, by weighted least squares with a constant. Each column is standardised first, so its units
/// do not matter; in directions without variance the slope is 0.
pub fn slopes(covariates: &[f64], columns: usize, outcome: &[f64], weights: &[f64]) -> Vec<f64> {
    let used: Vec<usize> = (0..weights.len())
        .filter(|&row| weights[row] > 0.0)
        .collect();
    let total: f64 = used.iter().map(|&row| weights[row]).sum();
    if total == 0.0 {
        return vec![0.0; columns];
    }
    let mean_of = |value: &dyn Fn(usize) -> f64| {
        used.iter()
            .map(|&row| weights[row] * value(row))
            .sum::<f64>()
            / total
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
    let found = eigen(&products, columns);
    let largest = found.values.iter().copied().fold(0.0, f64::max);
    let mut slopes = vec![0.0; columns];
    for (value, vector) in found.values.iter().zip(&found.vectors) {
        if *value <= largest * NEGLIGIBLE {
            continue;
        }
        let along: f64 = vector
            .iter()
            .zip(&with_outcome)
            .map(|(part, with)| part * with)
            .sum();
        for (slope, part) in slopes.iter_mut().zip(vector) {
            *slope += along / value * part;
        }
    }
    for (slope, scale) in slopes.iter_mut().zip(&scales) {
        *slope = if *scale > 0.0 { *slope / scale } else { 0.0 };
    }
    slopes
}
