//! Passes the fitness of candidates, and Kolmogorov-Smirnov p-values, to Python.

use equipoise_matching::fitness::options::{AcrossColumns, Loss, Measure, Options, WithinColumn};
use equipoise_matching::fitness::{Fitness, kolmogorov};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{array, flat};
use crate::matching::{MatchOptions, Units, check, choose, problem};
use crate::progress::ProgressReporter;

/// The criteria of a Python `equipoise_matching.matching.fitness.FitnessProblem`.
#[derive(FromPyObject)]
pub struct FitnessCriteria<'py> {
    balance: PyReadonlyArray2<'py, f64>,
    #[pyo3(from_py_with = measure)]
    measure: Measure,
    ks: bool,
    boot: usize,
    paired: bool,
}

/// Computes the fitness of candidates: the balance of the covariates after matching by them.
#[pyclass(module = "equipoise_matching._native", frozen)]
pub struct FitnessEngine {
    inner: Fitness,
}

#[pymethods]
impl FitnessEngine {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
    fn new(
        py: Python<'_>,
        units: Units<'_>,
        options: MatchOptions<'_>,
        criteria: FitnessCriteria<'_>,
    ) -> PyResult<Self> {
        let problem = problem(&units, &options)?;
        let &[rows, columns] = criteria.balance.shape() else {
            unreachable!("the array has two dimensions");
        };
        let fits = columns > 0 && rows == problem.rows();
        check(fits, "the covariates to balance need a row for each unit")?;
        let options = Options {
            problem,
            balance: flat(&criteria.balance),
            columns,
            measure: criteria.measure,
            kolmogorov_smirnov: criteria.ks,
            boot: criteria.boot,
            paired: criteria.paired,
            instructions: options.instructions()?,
        };
        Ok(Self {
            inner: py.detach(|| Fitness::new(options)),
        })
    }

    #[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        candidates: PyReadonlyArray2<'py, f64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let weights = flat(&candidates);
        let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        let is_usable = candidates.shape()[1] == self.inner.options().problem.columns
            && weights.iter().all(is_weight);
        let requirement = "candidates need a finite weight of 0 or more for each column";
        check(is_usable, requirement)?;
        let progress = ProgressReporter::new(progress);
        let report = |done, total| progress.report(done, total);
        let criteria = py.detach(|| self.inner.evaluate(&weights, &report));
        let criteria = array(py, progress.finish(criteria)?);
        let shape = [
            candidates.shape()[0],
            self.inner.options().criterion_count(),
        ];
        criteria.bind(py).reshape(shape)
    }
}

/// Returns P(K >= x) of Kolmogorov's distribution; `as_in_r` ends the series where R ends it.
#[pyfunction]
pub fn kolmogorov_p_value(x: f64, as_in_r: bool) -> f64 {
    kolmogorov::asymptotic(x, as_in_r)
}

/// Returns P(distance >= reach / (treated * control)) of two samples of these sizes. `ends` has the
/// index behind each group of ties among the sorted values of both samples.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python passes a list, which is copied.
pub fn smirnov_p_value(reach: u64, treated: usize, control: usize, ends: Vec<usize>) -> f64 {
    kolmogorov::exact(reach, treated, control, &ends)
}

/// Reads the measure of balance: the name of a loss of p-values, or the names of two summaries of
/// distances, the first within a column and the second across the columns.
fn measure(value: &Bound<'_, PyAny>) -> PyResult<Measure> {
    if let Ok((within, across)) = value.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        let summaries = [
            ("mean", (WithinColumn::Mean, AcrossColumns::Mean)),
            ("median", (WithinColumn::Median, AcrossColumns::Median)),
            ("max", (WithinColumn::Largest, AcrossColumns::Descending)),
        ];
        let (within, _) = choose(&within, &summaries)?;
        let (_, across) = choose(&across, &summaries)?;
        return Ok(Measure::Distance(within, across));
    }
    let losses = [
        ("sorted", Loss::Sorted),
        ("smallest", Loss::Smallest),
        ("unsorted", Loss::Unsorted),
    ];
    Ok(Measure::PValues(choose(value, &losses)?))
}
