//! A matrix class in the style of 2005, for `scythe`, the algorithm of that year.
//!
//! The class does unnecessary work on purpose (docs/reference/workloads.md). It computes every
//! result into a scratch array and copies the array into the matrix. It passes every argument by
//! value, as a copy. It checks both bounds at every read.

#![allow(
    clippy::needless_pass_by_value,
    reason = "this class passes by value on purpose"
)]

use std::hint::black_box;

/// A matrix, stored row by row.
#[derive(Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    elements: Vec<f64>,
}

impl Matrix {
    /// Returns a matrix with a copy of the elements. `black_box` prevents the compiler from
    /// removing the copy.
    #[inline(never)]
    pub fn from_scratch(rows: usize, columns: usize, scratch: &[f64]) -> Self {
        assert_eq!(scratch.len(), rows * columns, "rows times columns");
        Self {
            rows,
            columns,
            elements: black_box(scratch).to_vec(),
        }
    }

    pub fn column(elements: &[f64]) -> Self {
        Self::from_scratch(elements.len(), 1, elements)
    }

    /// Returns a square matrix with these numbers on its diagonal.
    pub fn diagonal(numbers: &[f64]) -> Self {
        Self::filled(numbers.len(), numbers.len(), |row, column| {
            if row == column { numbers[row] } else { 0.0 }
        })
    }

    fn filled(rows: usize, columns: usize, element: impl Fn(usize, usize) -> f64) -> Self {
        let mut scratch = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                scratch.push(element(row, column));
            }
        }
        Self::from_scratch(rows, columns, &scratch)
    }

    /// Returns a copy, as passing by value does.
    #[inline(never)]
    pub fn by_value(&self) -> Self {
        Self::filled(self.rows, self.columns, |row, column| self.at(row, column))
    }

    /// Returns an element, after a check of both bounds.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        assert!(row < self.rows, "no such row");
        assert!(column < self.columns, "no such column");
        self.elements[row * self.columns + column]
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn elements(&self) -> &[f64] {
        &self.elements
    }
}

/// Returns a column of ones.
pub fn ones(rows: usize) -> Matrix {
    Matrix::filled(rows, 1, |_, _| 1.0)
}

pub fn row_of(matrix: Matrix, row: usize) -> Matrix {
    Matrix::filled(1, matrix.columns, |_, column| matrix.at(row, column))
}

/// Returns the matrix product.
pub fn product(left: Matrix, right: Matrix) -> Matrix {
    assert_eq!(left.columns, right.rows, "inner sizes");
    Matrix::filled(left.rows, right.columns, |row, column| {
        let mut sum = 0.0;
        for inner in 0..left.columns {
            sum += left.at(row, inner) * right.at(inner, column);
        }
        sum
    })
}

pub fn difference(left: Matrix, right: Matrix) -> Matrix {
    by_element(&left, &right, |left, right| left - right)
}

pub fn sum(left: Matrix, right: Matrix) -> Matrix {
    by_element(&left, &right, |left, right| left + right)
}

/// Returns a matrix with the product of each two elements.
pub fn elementwise_product(left: Matrix, right: Matrix) -> Matrix {
    by_element(&left, &right, |left, right| left * right)
}

fn by_element(left: &Matrix, right: &Matrix, operation: impl Fn(f64, f64) -> f64) -> Matrix {
    assert_eq!(
        (left.rows, left.columns),
        (right.rows, right.columns),
        "sizes"
    );
    Matrix::filled(left.rows, left.columns, |row, column| {
        operation(left.at(row, column), right.at(row, column))
    })
}

pub fn transposed(matrix: Matrix) -> Matrix {
    Matrix::filled(matrix.columns, matrix.rows, |row, column| {
        matrix.at(column, row)
    })
}

/// Returns a column with the sum of each column of the matrix.
pub fn column_sums(matrix: Matrix) -> Matrix {
    Matrix::filled(matrix.columns, 1, |column, _| {
        let mut sum = 0.0;
        for row in 0..matrix.rows {
            sum += matrix.at(row, column);
        }
        sum
    })
}

/// Returns a mask: 1 where the element of the column is `value`, else 0.
pub fn mask_equal(column: Matrix, value: f64) -> Matrix {
    Matrix::filled(column.rows, 1, |row, _| {
        f64::from(u8::from(column.at(row, 0).total_cmp(&value).is_eq()))
    })
}

/// Returns a mask: 1 where the element of the column is at most `limit`, else 0.
pub fn mask_at_most(column: Matrix, limit: f64) -> Matrix {
    Matrix::filled(column.rows, 1, |row, _| {
        f64::from(u8::from(column.at(row, 0) <= limit))
    })
}

/// Returns the elements of the column where the mask is not 0.
pub fn masked_elements(column: Matrix, mask: Matrix) -> Matrix {
    let mut scratch = Vec::with_capacity(column.rows);
    for row in 0..column.rows {
        if mask.at(row, 0) != 0.0 {
            scratch.push(column.at(row, 0));
        }
    }
    Matrix::column(&scratch)
}

/// Returns the elements of the column in the given order.
pub fn reordered(column: Matrix, order: &[usize]) -> Matrix {
    Matrix::filled(order.len(), 1, |row, _| column.at(order[row], 0))
}

/// Returns the running sums of the column.
pub fn running_sums(column: Matrix) -> Matrix {
    let mut scratch = Vec::with_capacity(column.rows);
    let mut sum = 0.0;
    for row in 0..column.rows {
        sum += column.at(row, 0);
        scratch.push(sum);
    }
    Matrix::column(&scratch)
}

/// Returns the rows of `above`, followed by the rows of `below`.
pub fn stacked_rows(above: Matrix, below: Matrix) -> Matrix {
    assert_eq!(above.columns, below.columns, "columns");
    Matrix::filled(above.rows + below.rows, above.columns, |row, column| {
        if row < above.rows {
            above.at(row, column)
        } else {
            below.at(row - above.rows, column)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{
        Matrix, column_sums, difference, elementwise_product, mask_at_most, mask_equal,
        masked_elements, ones, product, reordered, row_of, running_sums, stacked_rows, sum,
        transposed,
    };
    use crate::counting_allocator::allocations_of;

    fn left() -> Matrix {
        Matrix::from_scratch(2, 3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    }

    #[test]
    fn operations_follow_matrix_algebra() {
        let right = || transposed(left());
        assert_eq!(right().elements(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(
            product(left(), right()).elements(),
            [14.0, 32.0, 32.0, 77.0]
        );
        assert_eq!(difference(left(), left()).elements(), [0.0; 6]);
        assert_eq!(
            sum(left(), left()).elements(),
            [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
        );
        assert_eq!(
            elementwise_product(left(), left()).elements(),
            [1.0, 4.0, 9.0, 16.0, 25.0, 36.0]
        );
        assert_eq!(column_sums(left()).elements(), [5.0, 7.0, 9.0]);
        assert_eq!(row_of(left(), 1).elements(), [4.0, 5.0, 6.0]);
        assert_eq!(
            product(ones(2), row_of(left(), 0)).elements(),
            [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]
        );
        assert_eq!(
            Matrix::diagonal(&[2.0, 3.0]).elements(),
            [2.0, 0.0, 0.0, 3.0]
        );
    }

    #[test]
    fn columns_can_be_masked_reordered_cumulated_and_bound() {
        let column = || Matrix::column(&[3.0, 1.0, 2.0]);
        assert_eq!(mask_equal(column(), 1.0).elements(), [0.0, 1.0, 0.0]);
        assert_eq!(mask_at_most(column(), 2.0).elements(), [0.0, 1.0, 1.0]);
        let mask = mask_at_most(column(), 2.0);
        assert_eq!(masked_elements(column(), mask).elements(), [1.0, 2.0]);
        assert_eq!(reordered(column(), &[1, 2, 0]).elements(), [1.0, 2.0, 3.0]);
        assert_eq!(running_sums(column()).elements(), [3.0, 4.0, 6.0]);
        let bound = stacked_rows(left(), row_of(left(), 0));
        assert_eq!((bound.rows(), bound.columns()), (3, 3));
        assert_eq!(bound.elements()[6..], [1.0, 2.0, 3.0]);
    }

    #[test]
    #[should_panic(expected = "no such column")]
    fn both_bounds_are_checked() {
        // Without a check of the bounds, this would read the first element of the second row.
        left().at(0, 3);
    }

    #[test]
    fn a_result_and_a_copy_by_value_are_each_allocated_twice() {
        let (left, right) = (left(), left());
        let bytes = 6 * size_of::<f64>();
        let (results, matrix) = allocations_of(bytes..=bytes, || sum(left, right));
        assert_eq!(results, 2);
        let (copies, _) = allocations_of(bytes..=bytes, || matrix.by_value());
        assert_eq!(copies, 2);
    }
}
