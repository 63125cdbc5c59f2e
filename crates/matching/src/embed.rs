//! Covariates as points whose plain squared distance is the one that is asked for.

use crate::eigen::eigen;
use crate::problem::{Metric, Problem, Rules};

/// R's `sqrt(.Machine$double.eps)`.
const TOLERANCE_OF_R: f64 = 1.490_116_119_384_765_6e-8;
const SMALLEST_EIGENVALUE_OF_R: f64 = 1e-7;
/// Eigenvalues below this share of the largest are rounding errors of zero.
const NEGLIGIBLE: f64 = 1e-13;

/// Points, one after another.
pub struct Points {
    /// Coordinates of each.
    pub dimensions: usize,
    /// Row after row.
    pub coordinates: Vec<f64>,
}

impl Points {
    /// The coordinates of the row.
    pub fn of(&self, row: usize) -> &[f64] {
        &self.coordinates[row * self.dimensions..(row + 1) * self.dimensions]
    }
}

/// The rows of the problem: x~ F with F F' = W.
pub fn embed(problem: &Problem) -> Points {
    let columns = problem.columns;
    let standardised = standardise(problem);
    let matrix = weight_matrix(problem, &standardised);
    let factor = factor(&matrix, columns);
    let dimensions = (factor.len() / columns).max(1);
    let mut coordinates = vec![0.0; problem.rows() * dimensions];
    for (row, point) in standardised
        .chunks_exact(columns)
        .zip(coordinates.chunks_exact_mut(dimensions))
    {
        for (axis, coordinate) in factor.chunks_exact(columns).zip(point) {
            *coordinate = row.iter().zip(axis).map(|(value, part)| value * part).sum();
        }
    }
    Points {
        dimensions,
        coordinates,
    }
}

/// Each column less its weighted mean, over its weighted standard deviation (in two passes: the
/// usual difference of squares turns a constant column into rounding errors).
fn standardise(problem: &Problem) -> Vec<f64> {
    let (rows, columns) = (problem.rows(), problem.columns);
    let mut standardised = problem.x.clone();
    let total: f64 = (0..rows).map(|row| problem.weight(row)).sum();
    for column in 0..columns {
        let unit = match problem.rules {
            Rules::Correct => {
                power_of_two((0..rows).map(|row| problem.x[row * columns + column].abs()))
            }
            Rules::AsInR => 1.0,
        };
        let values = || (0..rows).map(|row| problem.x[row * columns + column] / unit);
        let first = problem.x[column] / unit;
        let constant = values().all(|value| value.total_cmp(&first).is_eq());
        let sum = |of: &dyn Fn(f64) -> f64| -> f64 {
            values()
                .enumerate()
                .map(|(row, value)| problem.weight(row) * of(value))
                .sum()
        };
        let mean = if constant {
            first
        } else {
            sum(&|value| value) / total
        };
        let centred = sum(&|value| (value - mean).powi(2)) / total;
        let unbiased = rows as f64 / (rows as f64 - 1.0);
        let deviation = match problem.rules {
            Rules::Correct if constant || centred == 0.0 => 1.0,
            Rules::Correct => (centred * unbiased).sqrt(),
            Rules::AsInR => {
                // R's guard is on the raw second moment, which only tiny columns meet.
                let raw = sum(&|value| value * value);
                let guarded = (TOLERANCE_OF_R - raw).max(0.0) / total;
                ((centred + guarded) * unbiased).sqrt().max(TOLERANCE_OF_R)
            }
        };
        for row in 0..rows {
            let cell = &mut standardised[row * columns + column];
            *cell = (*cell / unit - mean) / deviation;
        }
    }
    standardised
}

/// At most the largest value and more than half of it, so that squares neither overflow nor
/// vanish; a division by it rounds nothing.
fn power_of_two(values: impl Iterator<Item = f64>) -> f64 {
    let largest = values.fold(0.0, f64::max);
    if largest == 0.0 {
        return 1.0;
    }
    largest.log2().floor().clamp(-1000.0, 1000.0).exp2()
}

fn identity(size: usize) -> Vec<f64> {
    (0..size * size)
        .map(|cell| f64::from(cell / size == cell % size))
        .collect()
}

fn weight_matrix(problem: &Problem, standardised: &[f64]) -> Vec<f64> {
    let columns = problem.columns;
    let mut matrix = match &problem.metric {
        Metric::InverseVariance => return identity(columns),
        Metric::Mahalanobis => inverse_covariance(problem, standardised),
        Metric::Matrix(given) => given.clone(),
    };
    if problem.rules == Rules::AsInR {
        let smallest = eigen(&matrix, columns)
            .values
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        if smallest < TOLERANCE_OF_R {
            for column in 0..columns {
                matrix[column * columns + column] += TOLERANCE_OF_R;
            }
        }
    }
    matrix
}

fn inverse_covariance(problem: &Problem, standardised: &[f64]) -> Vec<f64> {
    let columns = problem.columns;
    let mut covariance = vec![0.0; columns * columns];
    let mut total = 0.0;
    for (row, values) in standardised.chunks_exact(columns).enumerate() {
        // R centres with the weights, but sums without them.
        let weight = match problem.rules {
            Rules::Correct => problem.weight(row),
            Rules::AsInR => 1.0,
        };
        total += weight;
        for first in 0..columns {
            for second in 0..columns {
                covariance[first * columns + second] += weight * values[first] * values[second];
            }
        }
    }
    for cell in &mut covariance {
        *cell /= total;
    }
    let found = eigen(&covariance, columns);
    let largest = found.values.iter().copied().fold(0.0, f64::max);
    let smallest = found.values.iter().copied().fold(f64::INFINITY, f64::min);
    if problem.rules == Rules::AsInR && smallest <= SMALLEST_EIGENVALUE_OF_R {
        return identity(columns);
    }
    let mut inverse = vec![0.0; columns * columns];
    for (value, vector) in found.values.iter().zip(&found.vectors) {
        if *value <= largest * 1e-10 {
            continue;
        }
        for first in 0..columns {
            for second in 0..columns {
                inverse[first * columns + second] += vector[first] * vector[second] / value;
            }
        }
    }
    inverse
}

/// F' of F F' = W, axis after axis, without those that measure nothing.
fn factor(matrix: &[f64], columns: usize) -> Vec<f64> {
    let diagonal = matrix
        .iter()
        .enumerate()
        .all(|(cell, &value)| value == 0.0 || cell / columns == cell % columns);
    if diagonal {
        let mut factor = Vec::new();
        for column in 0..columns {
            let weight = matrix[column * columns + column];
            if weight > 0.0 {
                let mut axis = vec![0.0; columns];
                axis[column] = weight.sqrt();
                factor.extend(axis);
            }
        }
        return factor;
    }
    let found = eigen(matrix, columns);
    let largest = found.values.iter().copied().fold(0.0, f64::max);
    found
        .values
        .iter()
        .zip(&found.vectors)
        .filter(|(value, _)| **value > largest * NEGLIGIBLE)
        .flat_map(|(value, vector)| vector.iter().map(|part| part * value.sqrt()))
        .collect()
}
