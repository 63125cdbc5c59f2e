//! `NumPy` arrays in and out.

use numpy::ndarray::Dimension;
use numpy::{Element, PyArray1, PyReadonlyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Copies the values, row after row, whatever the layout of the array.
pub fn flat<T: Element + Copy, D: Dimension>(array: &PyReadonlyArray<'_, T, D>) -> Vec<T> {
    array.as_array().iter().copied().collect()
}

/// Copies row numbers; none may be negative.
pub fn indices(array: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<usize>> {
    let rows = array.as_array();
    let converted = rows.iter().map(|&row| usize::try_from(row)).collect();
    let converted: Result<Vec<usize>, _> = converted;
    converted.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Hands the values over to Python.
pub fn array(py: Python<'_>, values: Vec<f64>) -> Py<PyArray1<f64>> {
    PyArray1::from_vec(py, values).unbind()
}

/// Hands row numbers over to Python.
#[allow(clippy::cast_possible_wrap)] // There are fewer than 2^32 rows.
pub fn row_numbers(py: Python<'_>, rows: Vec<usize>) -> Py<PyArray1<i64>> {
    PyArray1::from_vec(py, rows.into_iter().map(|row| row as i64).collect()).unbind()
}
