//! The interface of the three algorithms, and the matrix that they match.

use equipoise_matching::Pairs;

use super::data::{COVARIATES, Data};
use super::matrix::Matrix;

/// Largest difference of squared distances that are ties, as in 2006.
pub const TOLERANCE: f64 = 1e-5;

/// An algorithm, ready to match under any candidate weights.
pub trait Matching {
    /// The pairs under the weights of the columns: the nearest match of every unit, with all ties.
    fn matches(&mut self, weights: &[f64]) -> Pairs;
}

/// The standardised covariates as a matrix: each column less its mean, over its standard
/// deviation with N - 1 (docs/methods/matching.md#what-is-computed).
pub fn standardised(data: &Data) -> Matrix {
    let rows = data.rows() as f64;
    let mut elements = data.covariates.clone();
    for column in 0..COVARIATES.len() {
        let values = || elements.iter().skip(column).step_by(COVARIATES.len());
        let mean = values().sum::<f64>() / rows;
        let squares = values().map(|value| (value - mean).powi(2)).sum::<f64>();
        let deviation = match (squares / (rows - 1.0)).sqrt() {
            // A constant column adds nothing to a distance, in any unit.
            0.0 => 1.0,
            deviation => deviation,
        };
        for cell in elements.iter_mut().skip(column).step_by(COVARIATES.len()) {
            *cell = (*cell - mean) / deviation;
        }
    }
    Matrix::from_scratch(data.rows(), COVARIATES.len(), &elements)
}
