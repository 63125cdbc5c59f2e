//! The interface of the three algorithms, and the standardised data for two of them.

use equipoise_matching::Pairs;

use super::data::{COVARIATES, Data};
use super::matrix::Matrix;

/// Maximum difference of the squared distances of a tie, as in 2006.
pub const TOLERANCE: f64 = 1e-5;

/// An algorithm that is ready to match the data under any weights.
pub trait Matching {
    /// Returns each unit with its nearest matches under these weights of the columns, all ties
    /// included.
    fn matches(&mut self, weights: &[f64]) -> Pairs;
}

/// Returns the standardised covariates as a matrix: each column minus its mean, divided by its
/// standard deviation (with N - 1; docs/methods/matching.md#what-is-computed).
pub fn standardised(data: &Data) -> Matrix {
    let rows = data.rows() as f64;
    let mut elements = data.covariates.clone();
    for column in 0..COVARIATES.len() {
        let values = || elements.iter().skip(column).step_by(COVARIATES.len());
        let mean = values().sum::<f64>() / rows;
        let squares = values().map(|value| (value - mean).powi(2)).sum::<f64>();
        let deviation = match (squares / (rows - 1.0)).sqrt() {
            // A constant column adds nothing to a distance, so the divisor is arbitrary.
            0.0 => 1.0,
            deviation => deviation,
        };
        for cell in elements.iter_mut().skip(column).step_by(COVARIATES.len()) {
            *cell = (*cell - mean) / deviation;
        }
    }
    Matrix::from_scratch(data.rows(), COVARIATES.len(), &elements)
}
