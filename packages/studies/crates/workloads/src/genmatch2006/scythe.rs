//! The algorithm of the release of November 2005.
//!
//! For every unit, an expression of matrix algebra computes the distances to all units. It has 13
//! temporary matrices of the size of the data (35 KB in the article), each allocated twice.

use equipoise_matching::Pairs;

use super::data::Data;
use super::matching::{Matching, standardised};
use super::matrix::{
    Matrix, column_sums, difference, elementwise_product, ones, product, row_of, transposed,
};
use super::selection::Selection;

/// The algorithm `scythe`.
pub struct Scythe<'a> {
    data: &'a Data,
    covariates: Matrix,
}

impl<'a> Scythe<'a> {
    pub fn new(data: &'a Data) -> Self {
        Self {
            data,
            covariates: standardised(data),
        }
    }
}

impl Matching for Scythe<'_> {
    fn matches(&mut self, weights: &[f64]) -> Pairs {
        // The Cholesky factor of the diagonal matrix of the weights has their roots.
        let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        let factor = Matrix::diagonal(&roots);
        let mut selection = Selection::new(self.data);
        for unit in 0..self.data.rows() {
            selection.add(unit, &distances(&self.covariates, &factor, unit));
        }
        selection.pairs()
    }
}

/// Returns the squared distance of every unit to one unit, x: the row sums of ((X - 1 x) W')². X
/// has the covariates, and W is the factor.
pub fn distances(covariates: &Matrix, factor: &Matrix, unit: usize) -> Matrix {
    let row = row_of(covariates.by_value(), unit);
    let repeated = product(ones(covariates.rows()).by_value(), row.by_value());
    let differences = difference(covariates.by_value(), repeated.by_value());
    let scaled = product(differences.by_value(), transposed(factor.by_value()));
    let squares = elementwise_product(scaled.by_value(), scaled.by_value());
    column_sums(transposed(squares.by_value()).by_value())
}

#[cfg(test)]
mod tests {
    use super::distances;
    use crate::counting_allocator::allocations_of;
    use crate::genmatch2006::data::{COVARIATES, Data};
    use crate::genmatch2006::matching::standardised;
    use crate::genmatch2006::matrix::Matrix;
    use crate::genmatch2006::selection::Selection;

    #[test]
    fn a_distance_is_the_weighted_sum_of_squares() {
        let data = Data::generate();
        let covariates = standardised(&data);
        let weights: Vec<f64> = (1_u8..=10).map(f64::from).collect();
        let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        let squared = distances(&covariates, &Matrix::diagonal(&roots), 7);
        for other in 0..data.rows() {
            let expected: f64 = (0..COVARIATES.len())
                .map(|column| {
                    let difference = covariates.at(other, column) - covariates.at(7, column);
                    weights[column] * difference * difference
                })
                .sum();
            assert!((squared.at(other, 0) - expected).abs() <= 1e-9 * (1.0 + expected));
        }
    }

    #[test]
    fn each_unit_allocates_13_matrices_of_the_size_of_the_data_twice() {
        for rows in [445, 890] {
            let data = Data::generate().repeated(rows).unwrap();
            let covariates = standardised(&data);
            let factor = Matrix::diagonal(&[1.0; COVARIATES.len()]);
            let bytes = rows * COVARIATES.len() * size_of::<f64>();
            let (counted, _) = allocations_of(bytes..=bytes, || distances(&covariates, &factor, 0));
            assert_eq!(counted, 2 * 13);
        }
    }

    #[test]
    fn each_unit_allocates_28_columns_twice() {
        let data = Data::generate();
        let covariates = standardised(&data);
        let factor = Matrix::diagonal(&[1.0; COVARIATES.len()]);
        let mut selection = Selection::new(&data);
        let smallest_arm = 185;
        let bytes = smallest_arm * size_of::<f64>()..=data.rows() * size_of::<f64>();
        let (counted, ()) = allocations_of(bytes, || {
            selection.add(0, &distances(&covariates, &factor, 0));
        });
        assert_eq!(counted, 2 * 28);
    }
}
