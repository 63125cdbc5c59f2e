//! Eigenvalues of small symmetric matrices by Jacobi's rotations (Golub and Van Loan, §8.5).

/// A symmetric matrix as the sum of `values[m] * vectors[m] vectors[m]'`.
pub struct Eigen {
    /// Eigenvalues, one for each row of the matrix, unsorted.
    pub values: Vec<f64>,
    /// Orthogonal eigenvectors of length 1; `vectors[m]` belongs to `values[m]`.
    pub vectors: Vec<Vec<f64>>,
}

impl Eigen {
    pub fn smallest(&self) -> f64 {
        self.values.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the eigenvalues above this fraction of the largest, each with its vector.
    pub fn above(&self, fraction: f64) -> impl Iterator<Item = (f64, &Vec<f64>)> {
        let limit = self.values.iter().copied().fold(0.0, f64::max) * fraction;
        let pairs = self.values.iter().copied().zip(&self.vectors);
        pairs.filter(move |(value, _)| *value > limit)
    }
}

/// Largest number of sweeps; each sweep rotates every pair of rows once.
const MAX_SWEEPS: usize = 60;
/// The sweeps end when the squares outside the diagonal are at most this fraction of all squares.
const NEGLIGIBLE_SQUARES: f64 = 1e-32;

/// Returns the eigenvalues and eigenvectors of a symmetric matrix, which is given row after row.
pub fn eigen(matrix: &[f64], size: usize) -> Eigen {
    let mut rotated = matrix.to_vec();
    let mut vectors: Vec<Vec<f64>> = (0..size)
        .map(|row| (0..size).map(|column| f64::from(row == column)).collect())
        .collect();
    for _ in 0..MAX_SWEEPS {
        let (mut off_diagonal, mut all_squares) = (0.0, 0.0);
        for row in 0..size {
            for column in 0..size {
                let square = rotated[row * size + column].powi(2);
                all_squares += square;
                if row != column {
                    off_diagonal += square;
                }
            }
        }
        if off_diagonal <= all_squares * NEGLIGIBLE_SQUARES {
            break;
        }
        for first in 0..size {
            for second in first + 1..size {
                rotate(&mut rotated, &mut vectors, size, first, second);
            }
        }
    }
    let values = (0..size).map(|row| rotated[row * size + row]).collect();
    Eigen { values, vectors }
}

/// Rotates two rows and columns, and their vectors, so that the element where they cross is 0.
fn rotate(matrix: &mut [f64], vectors: &mut [Vec<f64>], size: usize, first: usize, second: usize) {
    let off_diagonal = matrix[first * size + second];
    if off_diagonal == 0.0 {
        return;
    }
    let difference = matrix[second * size + second] - matrix[first * size + first];
    let theta = difference / (2.0 * off_diagonal);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cos = 1.0 / tangent.hypot(1.0);
    let sin = tangent * cos;
    for other in 0..size {
        let (left, right) = (matrix[other * size + first], matrix[other * size + second]);
        matrix[other * size + first] = cos * left - sin * right;
        matrix[other * size + second] = sin * left + cos * right;
    }
    for other in 0..size {
        let (upper, lower) = (matrix[first * size + other], matrix[second * size + other]);
        matrix[first * size + other] = cos * upper - sin * lower;
        matrix[second * size + other] = sin * upper + cos * lower;
    }
    let (before, from_second) = vectors.split_at_mut(second);
    for (left, right) in before[first].iter_mut().zip(&mut from_second[0]) {
        (*left, *right) = (cos * *left - sin * *right, sin * *left + cos * *right);
    }
}

#[cfg(test)]
mod tests {
    use super::{Eigen, eigen};

    #[test]
    fn eigenvalues_and_eigenvectors_rebuild_the_matrix() {
        let matrix = [4.0, 1.0, 0.5, 1.0, 3.0, -0.2, 0.5, -0.2, 2.0];
        let Eigen { values, vectors } = eigen(&matrix, 3);
        for row in 0..3 {
            for column in 0..3 {
                let term = |m: usize| values[m] * vectors[m][row] * vectors[m][column];
                let sum: f64 = (0..3).map(term).sum();
                assert!((sum - matrix[row * 3 + column]).abs() < 1e-12);
            }
        }
    }
}
