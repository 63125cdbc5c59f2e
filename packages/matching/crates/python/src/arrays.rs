//! Conversions between `NumPy` arrays and Rust vectors.

use numpy::ndarray::Dimension;
use numpy::{Element, PyArray1, PyReadonlyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Copies the values of an array, row after row, whatever its memory layout.
pub fn flat<T: Element + Copy, D: Dimension>(array: &PyReadonlyArray<'_, T, D>) -> Vec<T> {
    array.as_array().iter().copied().collect()
}

/// Copies row numbers. A negative number is an error.
pub fn indices(array: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
    let rows = array.as_array();
    let indices: Result<Vec<usize>, _> = rows.iter().map(|&row| usize::try_from(row)).collect();
    indices.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Makes a Python array of numbers.
pub fn array(py: Python<'_>, values: Vec<f64>) -> Py<PyArray1<f64>> {
    PyArray1::from_vec(py, values).unbind()
}

/// Makes a Python array of row numbers.
#[allow(clippy::cast_possible_wrap)] // There are fewer than 2^32 rows.
pub fn row_numbers(py: Python<'_>, rows: Vec<usize>) -> Py<PyArray1<i64>> {
    PyArray1::from_vec(py, rows.into_iter().map(|row| row as i64).collect()).unbind()
}
