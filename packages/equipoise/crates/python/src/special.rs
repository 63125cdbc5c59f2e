//! Student's t distribution for Python.

use equipoise_special::Student;
use pyo3::prelude::*;

/// Returns the two-sided p-value P(|T| >= |t|) of Student's t distribution.
#[pyfunction]
pub fn student_p_value(t: f64, degrees_of_freedom: f64) -> f64 {
    Student::new(degrees_of_freedom).two_sided(t)
}

/// Returns the quantile of Student's t distribution.
#[pyfunction]
pub fn student_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    Student::new(degrees_of_freedom).quantile(probability)
}
