//! Student's t for Python.

use equipoise_special::Student;
use pyo3::prelude::*;

/// P(|T| >= |t|) of Student's distribution.
#[pyfunction]
pub fn student_p_value(t: f64, freedom: f64) -> f64 {
    Student::new(freedom).two_sided(t)
}

/// The quantile of Student's distribution.
#[pyfunction]
pub fn student_quantile(probability: f64, freedom: f64) -> f64 {
    Student::new(freedom).quantile(probability)
}
