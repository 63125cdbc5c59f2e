//! Covariates as points whose Euclidean distance is the distance of the metric.

use crate::eigen::eigen;
use crate::problem::{Metric, Problem, Rules};

/// R's `sqrt(.Machine$double.eps)`.
const TOLERANCE_OF_R: f64 = 1.490_116_119_384_765_6e-8;
const SMALLEST_EIGENVALUE_OF_R: f64 = 1e-7;
/// Eigenvalues below this fraction of the largest are rounding errors of zero.
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
    let mut cells = matrix.iter().enumerate();
    if cells.all(|(cell, &value)| value == 0.0 || cell / columns == cell % columns) {
        return along_columns(&matrix, columns, &standardised);
    }
    let factor = factor(&matrix, columns);
    let dimensions = (factor.len() / columns).max(1);
    let mut coordinates = vec![0.0; problem.rows() * dimensions];
    let points = coordinates.chunks_exact_mut(dimensions);
    for (row, point) in standardised.chunks_exact(columns).zip(points) {
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
    let total: f64 = (0..rows).map(|row| problem.weight(row)).sum();
    let mut standardised = in_units(problem);
    let first = &standardised[..columns];
    let mut constant = vec![true; columns];
    for row in standardised.chunks_exact(columns) {
        for ((constant, value), first) in constant.iter_mut().zip(row).zip(first) {
            *constant &= value.total_cmp(first).is_eq();
        }
    }
    let means: Vec<f64> = column_sums(problem, &standardised, first, |value, _| value)
        .into_iter()
        .zip(constant.iter().zip(first))
        .map(|(sum, (&constant, &first))| if constant { first } else { sum / total })
        .collect();
    let squares = column_sums(problem, &standardised, &means, |value, mean| {
        (value - mean).powi(2)
    });
    // R's guard is on the raw second moment, which only tiny columns meet.
    let raw = match problem.rules {
        Rules::Correct => vec![TOLERANCE_OF_R; columns],
        Rules::AsInR => column_sums(problem, &standardised, &means, |value, _| value * value),
    };
    let unbiased = rows as f64 / (rows as f64 - 1.0);
    let deviation = |column: usize| {
        let centred = squares[column] / total;
        match problem.rules {
            Rules::Correct if constant[column] || centred == 0.0 => 1.0,
            Rules::Correct => (centred * unbiased).sqrt(),
            Rules::AsInR => {
                let guarded = (TOLERANCE_OF_R - raw[column]).max(0.0) / total;
                ((centred + guarded) * unbiased).sqrt().max(TOLERANCE_OF_R)
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

/// The columns in units in which their squares neither overflow nor underflow; unchanged under R's
/// rules.
fn in_units(problem: &Problem) -> Vec<f64> {
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
    let units: Vec<f64> = largest.into_iter().map(power_of_two).collect();
    for row in values.chunks_exact_mut(columns) {
        for (value, unit) in row.iter_mut().zip(&units) {
            *value /= unit;
        }
    }
    values
}

/// A power of two, at most the largest value and more than half of it; division by it is exact.
fn power_of_two(largest: f64) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    largest.log2().floor().clamp(-1000.0, 1000.0).exp2()
}

/// The weighted sum of each column's values, each after `part` with the column's centre.
fn column_sums(
    problem: &Problem,
    values: &[f64],
    centres: &[f64],
    part: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let mut sums = vec![0.0; problem.columns];
    for (row, values) in values.chunks_exact(problem.columns).enumerate() {
        let weight = problem.weight(row);
        for ((sum, &value), &centre) in sums.iter_mut().zip(values).zip(centres) {
            *sum += weight * part(value, centre);
        }
    }
    sums
}

/// The points of a diagonal W: columns times the roots of their weights.
fn along_columns(matrix: &[f64], columns: usize, standardised: &[f64]) -> Points {
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
    if problem.rules == Rules::AsInR && eigen(&matrix, columns).smallest() < TOLERANCE_OF_R {
        for element in matrix.iter_mut().step_by(columns + 1) {
            *element += TOLERANCE_OF_R;
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
    let parts = eigen(&covariance, columns);
    if problem.rules == Rules::AsInR && parts.smallest() <= SMALLEST_EIGENVALUE_OF_R {
        return identity(columns);
    }
    let mut inverse = vec![0.0; columns * columns];
    for (value, vector) in parts.above(1e-10) {
        for first in 0..columns {
            for second in 0..columns {
                inverse[first * columns + second] += vector[first] * vector[second] / value;
            }
        }
    }
    inverse
}

/// F' of F F' = W, axis by axis, without axes of weight 0.
fn factor(matrix: &[f64], columns: usize) -> Vec<f64> {
    let parts = eigen(matrix, columns);
    let axes = parts.above(NEGLIGIBLE);
    axes.flat_map(|(value, vector)| vector.iter().map(move |part| part * value.sqrt()))
        .collect()
}
