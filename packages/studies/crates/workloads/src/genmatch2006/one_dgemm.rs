//! The algorithm of May 2006. It allocates its work space once, and calls dgemm once for each unit.

use equipoise_matching::Pairs;

use crate::blas::Blas;

use super::data::Data;
use super::matching::{Matching, standardised};
use super::matrix::Matrix;
use super::selection::Selection;

/// The algorithm `blas`.
pub struct OneDgemm<'a> {
    data: &'a Data,
    blas: &'a Blas,
    covariates: Matrix,
    /// Work space: the covariates minus the covariates of one unit.
    differences: Vec<f64>,
    /// Work space: the differences times the roots of the weights.
    scaled: Vec<f64>,
}

impl<'a> OneDgemm<'a> {
    pub fn new(data: &'a Data, blas: &'a Blas) -> Self {
        let covariates = standardised(data);
        let length = covariates.elements().len();
        Self {
            data,
            blas,
            covariates,
            differences: vec![0.0; length],
            scaled: vec![0.0; length],
        }
    }

    /// Returns the squared distance of every unit to one unit.
    fn distances(&mut self, factor: &Matrix, unit: usize) -> Matrix {
        let columns = self.covariates.columns();
        self.differences.copy_from_slice(self.covariates.elements());
        let row_of_unit = &self.covariates.elements()[unit * columns..(unit + 1) * columns];
        for row in self.differences.chunks_exact_mut(columns) {
            for (cell, value) in row.iter_mut().zip(row_of_unit) {
                *cell -= value;
            }
        }
        // The matrix is stored row by row, but the BLAS reads it by columns and so sees its
        // transpose. Therefore the diagonal factor is on the left.
        let sizes = (columns, columns, self.covariates.rows());
        self.blas.multiply(
            sizes,
            factor.elements(),
            &self.differences,
            &mut self.scaled,
        );
        for cell in &mut self.scaled {
            *cell *= *cell;
        }
        let rows = self.scaled.chunks_exact(columns);
        Matrix::column(&rows.map(|row| row.iter().sum()).collect::<Vec<_>>())
    }
}

impl Matching for OneDgemm<'_> {
    fn matches(&mut self, weights: &[f64]) -> Pairs {
        // The Cholesky factor of the diagonal matrix of the weights has their roots.
        let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        let factor = Matrix::diagonal(&roots);
        let mut selection = Selection::new(self.data);
        for unit in 0..self.data.rows() {
            let distances = self.distances(&factor, unit);
            selection.add(unit, &distances);
        }
        selection.pairs()
    }
}
