//! Turns covariates into points whose Euclidean distance is the distance of the metric.

use crate::eigen::eigen;
use crate::problem::{Metric, Problem, Rules};

/// R's `sqrt(.Machine$double.eps)`.
const R_TOLERANCE: f64 = 1.490_116_119_384_765_6e-8;
/// R inverts a covariance matrix only if its smallest eigenvalue is larger.
const R_MIN_EIGENVALUE: f64 = 1e-7;
/// Eigenvalues of a covariance matrix below this fraction of the largest are not inverted.
const MIN_INVERTED_FRACTION: f64 = 1e-10;
/// Eigenvalues below this fraction of the largest are rounding errors of zero.
const NEGLIGIBLE_FRACTION: f64 = 1e-13;

/// Points with several coordinates each.
pub struct Points {
    pub dimensions: usize,
    /// Coordinates, point after point.
    pub coordinates: Vec<f64>,
}

impl Points {
    pub fn row(&self, row: usize) -> &[f64] {
        &self.coordinates[row * self.dimensions..(row + 1) * self.dimensions]
    }
}

/// Returns for each row a point: the standardised covariates times F, where F F' is the metric W.
pub fn embed(problem: &Problem) -> Points {
    let columns = problem.columns;
    let standardised = standardise(problem);
    let matrix = weight_matrix(problem, &standardised);
    let mut cells = matrix.iter().enumerate();
    if cells.all(|(cell, &value)| value == 0.0 || cell / columns == cell % columns) {
        return diagonal_points(&matrix, columns, &standardised);
    }
    let factor = factor(&matrix, columns);
    let dimensions = (factor.len() / columns).max(1);
    let mut coordinates = vec![0.0; problem.rows() * dimensions];
    let points = coordinates.chunks_exact_mut(dimensions);
    for (row, point) in standardised.chunks_exact(columns).zip(points) {
        for (axis, coordinate) in factor.chunks_exact(columns).zip(point) {
            let terms = row.iter().zip(axis).map(|(value, factor)| value * factor);
            *coordinate = terms.sum();
        }
    }
    Points {
        dimensions,
        coordinates,
    }
}

/// Returns each column minus its weighted mean, divided by its weighted standard deviation. A
/// second pass computes the deviations, so that a constant column has no rounding errors.
fn standardise(problem: &Problem) -> Vec<f64> {
    let (rows, columns) = (problem.rows(), problem.columns);
    let total: f64 = (0..rows).map(|row| problem.weight(row)).sum();
    let mut standardised = rescaled_columns(problem);
    let first_row = &standardised[..columns];
    let mut is_constant = vec![true; columns];
    for row in standardised.chunks_exact(columns) {
        for ((is_constant, value), first) in is_constant.iter_mut().zip(row).zip(first_row) {
            *is_constant &= value.total_cmp(first).is_eq();
        }
    }
    let means: Vec<f64> = column_sums(problem, &standardised, first_row, |value, _| value)
        .into_iter()
        .zip(is_constant.iter().zip(first_row))
        .map(|(sum, (&is_constant, &first))| if is_constant { first } else { sum / total })
        .collect();
    let squares = column_sums(problem, &standardised, &means, |value, mean| {
        (value - mean).powi(2)
    });
    // R raises the variance of a column whose squares have a very small sum.
    let added_variances: Vec<f64> = match problem.rules {
        Rules::Correct => vec![0.0; columns],
        Rules::AsInR => column_sums(problem, &standardised, &means, |value, _| value * value)
            .into_iter()
            .map(|sum| (R_TOLERANCE - sum).max(0.0) / total)
            .collect(),
    };
    let unbiased = rows as f64 / (rows as f64 - 1.0);
    let deviation = |column: usize| {
        let variance = squares[column] / total;
        match problem.rules {
            Rules::Correct if is_constant[column] || variance == 0.0 => 1.0,
            Rules::Correct => (variance * unbiased).sqrt(),
            Rules::AsInR => {
                let raised_variance = variance + added_variances[column];
                (raised_variance * unbiased).sqrt().max(R_TOLERANCE)
            }
        }
    };
    let deviations: Vec<f64> = (0..columns).map(deviation).collect();
    for row in standardised.chunks_exact_mut(columns) {
        for ((cell, mean), deviation) in row.iter_mut().zip(&means).zip(&deviations) {
            *cell = (*cell - mean) / deviation;
        }
    }
    standardised
}

/// Returns the columns, scaled so that squares neither overflow nor underflow. R does not scale.
fn rescaled_columns(problem: &Problem) -> Vec<f64> {
    let columns = problem.columns;
    let mut values = problem.x.clone();
    if problem.rules == Rules::AsInR {
        return values;
    }
    let mut largest = vec![0.0_f64; columns];
    for row in values.chunks_exact(columns) {
        for (largest, value) in largest.iter_mut().zip(row) {
            *largest = largest.max(value.abs());
        }
    }
    let scales: Vec<f64> = largest.into_iter().map(power_of_two).collect();
    for row in values.chunks_exact_mut(columns) {
        for (value, scale) in row.iter_mut().zip(&scales) {
            *value /= scale;
        }
    }
    values
}

/// Returns the largest power of two that is at most `largest`; division by it is exact.
fn power_of_two(largest: f64) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    largest.log2().floor().clamp(-1000.0, 1000.0).exp2()
}

/// Returns for each column the weighted sum of `term(value, centre)` over its values.
fn column_sums(
    problem: &Problem,
    values: &[f64],
    centres: &[f64],
    term: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let mut sums = vec![0.0; problem.columns];
    for (row, values) in values.chunks_exact(problem.columns).enumerate() {
        let weight = problem.weight(row);
        for ((sum, &value), &centre) in sums.iter_mut().zip(values).zip(centres) {
            *sum += weight * term(value, centre);
        }
    }
    sums
}

/// Returns the points for a diagonal W: each column times the square root of its weight.
fn diagonal_points(matrix: &[f64], columns: usize, standardised: &[f64]) -> Points {
    let axes: Vec<(usize, f64)> = (0..columns)
        .map(|column| (column, matrix[column * columns + column]))
        .filter(|&(_, weight)| weight > 0.0)
        .map(|(column, weight)| (column, weight.sqrt()))
        .collect();
    let rows = standardised.chunks_exact(columns);
    let coordinates = if axes.is_empty() {
        vec![0.0; rows.len()]
    } else {
        rows.flat_map(|row| axes.iter().map(|&(column, root)| row[column] * root))
            .collect()
    };
    Points {
        dimensions: axes.len().max(1),
        coordinates,
    }
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
        Metric::Matrix(matrix) => matrix.clone(),
    };
    if problem.rules == Rules::AsInR && eigen(&matrix, columns).smallest() < R_TOLERANCE {
        for element in matrix.iter_mut().step_by(columns + 1) {
            *element += R_TOLERANCE;
        }
    }
    matrix
}

fn inverse_covariance(problem: &Problem, standardised: &[f64]) -> Vec<f64> {
    let columns = problem.columns;
    let mut covariance = vec![0.0; columns * columns];
    let mut total = 0.0;
    for (row, values) in standardised.chunks_exact(columns).enumerate() {
        // R subtracts the weighted mean, but sums without weights.
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
    let decomposition = eigen(&covariance, columns);
    if problem.rules == Rules::AsInR && decomposition.smallest() <= R_MIN_EIGENVALUE {
        return identity(columns);
    }
    let mut inverse = vec![0.0; columns * columns];
    for (value, vector) in decomposition.above(MIN_INVERTED_FRACTION) {
        for first in 0..columns {
            for second in 0..columns {
                inverse[first * columns + second] += vector[first] * vector[second] / value;
            }
        }
    }
    inverse
}

/// Returns F' with F F' = W, one axis after another. Axes of weight 0 are left out.
fn factor(matrix: &[f64], columns: usize) -> Vec<f64> {
    let decomposition = eigen(matrix, columns);
    let axes = decomposition.above(NEGLIGIBLE_FRACTION);
    axes.flat_map(|(value, vector)| vector.iter().map(move |component| component * value.sqrt()))
        .collect()
}
