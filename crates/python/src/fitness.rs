//! The face of the fitness of candidates, and of the p-values that it is made of.

use equipoise_matching::fitness::options::{Across, Loss, Measure, Options, Within};
use equipoise_matching::fitness::{Fitness, kolmogorov};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::matching::{
    PairBytes, Teller, float_bytes, floats, index_bytes, instructions, item, optional, problem,
};

/// Judges candidates: how well each balances the covariates that it matches by.
#[pyclass(module = "equipoise._native", frozen)]
pub struct FitnessEngine {
    inner: Fitness,
}

#[pymethods]
impl FitnessEngine {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = fitness_options(options)?;
        Ok(Self {
            inner: py.detach(|| Fitness::new(options)),
        })
    }

    #[getter]
    fn criteria(&self) -> usize {
        self.inner.options().criteria()
    }

    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        weights: &Bound<'py, PyAny>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let weights = self.candidates(weights)?;
        let teller = Teller::new(progress);
        let criteria = py.detach(|| {
            self.inner
                .evaluate(&weights, &|done, of| teller.tell(done, of))
        });
        float_bytes(py, &teller.outcome(criteria)?)
    }

    fn pairs<'py>(&self, py: Python<'py>, weights: &Bound<'py, PyAny>) -> PyResult<PairBytes<'py>> {
        let weights = self.candidates(weights)?;
        if weights.len() != self.inner.options().problem.columns {
            return Err(PyValueError::new_err("pairs are those of one candidate"));
        }
        let teller = Teller::new(None);
        let tell = |done, of| teller.tell(done, of);
        let pairs = py.detach(|| self.inner.pairs(&weights, &tell));
        let pairs = teller.outcome(pairs)?;
        Ok((
            index_bytes(py, &pairs.query)?,
            index_bytes(py, &pairs.matched)?,
            float_bytes(py, &pairs.weight)?,
            index_bytes(py, &pairs.dropped)?,
        ))
    }
}

impl FitnessEngine {
    fn candidates(&self, weights: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
        let weights = floats(weights)?;
        let whole = weights
            .len()
            .is_multiple_of(self.inner.options().problem.columns);
        let usable = weights
            .iter()
            .all(|weight| weight.is_finite() && *weight >= 0.0);
        if whole && usable {
            Ok(weights)
        } else {
            Err(PyValueError::new_err(
                "candidates need a finite weight of 0 or more for each column",
            ))
        }
    }
}

/// P(K >= x) of Kolmogorov's distribution; the series ended where R ends it if `as_in_r`.
#[pyfunction]
pub fn kolmogorov_p_value(x: f64, as_in_r: bool) -> f64 {
    kolmogorov::asymptotic(x, as_in_r)
}

/// P(distance >= reach / size) of two samples of one size, given where groups of ties end.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python hands over a list of its own.
pub fn exact_smirnov_p_value(reach: u64, size: usize, ends: Vec<usize>) -> f64 {
    kolmogorov::exact(reach, size, &ends)
}

fn fitness_options(options: &Bound<'_, PyDict>) -> PyResult<Options> {
    let problem = problem(options)?;
    let balance = floats(&item(options, "balance")?)?;
    let columns: usize = item(options, "balance_columns")?.extract()?;
    if columns == 0 || balance.len() != problem.rows() * columns {
        return Err(PyValueError::new_err("lengths that do not fit together"));
    }
    let measure = match optional(options, "within")? {
        None => Measure::PValues(match item(options, "loss")?.extract::<String>()?.as_str() {
            "sorted" => Loss::Sorted,
            "smallest" => Loss::Smallest,
            "unsorted" => Loss::Unsorted,
            other => return Err(unknown("loss", other)),
        }),
        Some(within) => Measure::Distance(
            match within.extract::<String>()?.as_str() {
                "mean" => Within::Mean,
                "median" => Within::Median,
                "max" => Within::Largest,
                other => return Err(unknown("within", other)),
            },
            match item(options, "across")?.extract::<String>()?.as_str() {
                "mean" => Across::Mean,
                "median" => Across::Median,
                "max" => Across::Descending,
                other => return Err(unknown("across", other)),
            },
        ),
    };
    Ok(Options {
        problem,
        balance,
        columns,
        measure,
        kolmogorov_smirnov: item(options, "ks")?.extract()?,
        boot: item(options, "boot")?.extract()?,
        paired: item(options, "paired")?.extract()?,
        instructions: instructions(options)?,
    })
}

fn unknown(option: &str, value: &str) -> PyErr {
    PyValueError::new_err(format!("no {option}: {value}"))
}
