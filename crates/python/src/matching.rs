//! The matching engine's face.

use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use equipoise_matching as matching;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A matching problem whose units are in place for searching.
#[pyclass(module = "equipoise._native", frozen)]
pub struct MatchingEngine {
    inner: matching::Matcher,
}

/// Rows of queries and matches, weights, and rows that were dropped.
pub(crate) type PairBytes<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

#[pymethods]
impl MatchingEngine {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let problem = problem(options)?;
        let instructions = instructions(options)?;
        Ok(Self {
            inner: py.detach(|| matching::Matcher::with_instructions(problem, instructions)),
        })
    }

    #[getter]
    fn uses_tree(&self) -> bool {
        self.inner.uses_tree()
    }

    fn pairs<'py>(&self, py: Python<'py>, progress: Option<Py<PyAny>>) -> PyResult<PairBytes<'py>> {
        let teller = Teller::new(progress);
        let pairs = py.detach(|| self.inner.pairs(&|done, of| teller.tell(done, of)));
        let pairs = teller.outcome(pairs)?;
        Ok((
            index_bytes(py, &pairs.query)?,
            index_bytes(py, &pairs.matched)?,
            float_bytes(py, &pairs.weight)?,
            index_bytes(py, &pairs.dropped)?,
        ))
    }

    fn variances<'py>(
        &self,
        py: Python<'py>,
        outcome: &Bound<'py, PyAny>,
        neighbours: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let outcome = floats(outcome)?;
        let teller = Teller::new(None);
        let tell = |done, of| teller.tell(done, of);
        let variances = py.detach(|| self.inner.variances(&outcome, neighbours, &tell));
        variance_bytes(py, &teller.outcome(variances)?)
    }
}

/// The effect and its errors, from pairs: effect, unadjusted effect, variances in the
/// population and in the sample, the error of the pairs and the conditional error.
#[pyfunction]
pub fn matching_estimate(
    py: Python<'_>,
    options: &Bound<'_, PyDict>,
) -> PyResult<(f64, f64, f64, f64, f64, f64)> {
    let treated = flags(&item(options, "treated")?)?;
    let outcome = floats(&item(options, "outcome")?)?;
    let weights = floats(&item(options, "weights")?)?;
    let pairs = matching::Pairs {
        query: indices(&item(options, "query")?)?,
        matched: indices(&item(options, "matched")?)?,
        weight: floats(&item(options, "weight")?)?,
        dropped: Vec::new(),
    };
    let covariates = optional(options, "covariates")?
        .map(|given| floats(&given))
        .transpose()?;
    let columns: usize = item(options, "columns")?.extract()?;
    let variances: Option<Vec<Option<f64>>> = optional(options, "variances")?
        .map(|given| floats(&given))
        .transpose()?
        .map(|given| {
            let known = |variance: f64| (!variance.is_nan()).then_some(variance);
            given.into_iter().map(known).collect()
        });
    let sample = matching::Sample {
        treated: &treated,
        outcome: &outcome,
        weights: &weights,
        estimand: estimand(options)?,
        rules: rules(options)?,
        covariates: covariates.as_deref().map(|given| (given, columns)),
        variances: variances.as_deref(),
    };
    let rows = treated.len();
    let fits = outcome.len() == rows
        && weights.len() == rows
        && pairs
            .query
            .iter()
            .chain(&pairs.matched)
            .all(|&row| row < rows)
        && pairs.query.len() == pairs.matched.len()
        && pairs.query.len() == pairs.weight.len()
        && sample
            .covariates
            .is_none_or(|(given, columns)| given.len() == rows * columns)
        && sample.variances.is_none_or(|given| given.len() == rows);
    if !fits {
        return Err(PyValueError::new_err(
            "lengths or rows that do not fit together",
        ));
    }
    let found = py.detach(|| sample.estimate(&pairs));
    Ok((
        found.effect,
        found.unadjusted,
        found.population_variance,
        found.sample_variance,
        found.standard_error_of_pairs,
        found.conditional_error,
    ))
}

/// How long an interrupt may wait until it is looked for.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(20);

/// Passes progress on to Python; what Python raises meanwhile, Ctrl-C included, stops the work.
pub(crate) struct Teller {
    callback: Option<Py<PyAny>>,
    failed: Mutex<Option<PyErr>>,
    caller: ThreadId,
    looked: Mutex<Instant>,
}

impl Teller {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self {
            callback,
            failed: Mutex::new(None),
            caller: std::thread::current().id(),
            looked: Mutex::new(Instant::now()),
        }
    }

    /// Whether to go on.
    pub(crate) fn tell(&self, done: usize, of: usize) -> bool {
        let told = match &self.callback {
            Some(callback) => Python::attach(|py| callback.call1(py, (done, of)).map(drop)),
            None => Ok(()),
        };
        let Err(error) = told.and_then(|()| self.signals()) else {
            return true;
        };
        if let Ok(mut failed) = self.failed.lock() {
            failed.get_or_insert(error);
        }
        false
    }

    /// Python handles signals in the thread that called us only.
    fn signals(&self) -> PyResult<()> {
        if std::thread::current().id() != self.caller {
            return Ok(());
        }
        let Ok(mut looked) = self.looked.lock() else {
            return Ok(());
        };
        if looked.elapsed() < BETWEEN_SIGNALS {
            return Ok(());
        }
        *looked = Instant::now();
        // The method itself would not hold for every lifetime.
        #[allow(clippy::redundant_closure_for_method_calls)]
        Python::attach(|py| py.check_signals())
    }

    /// What was found, or the error that stopped the work.
    pub(crate) fn outcome<T>(self, found: Option<T>) -> PyResult<T> {
        match (self.failed.into_inner(), found) {
            (Ok(Some(error)), _) => Err(error),
            (_, Some(found)) => Ok(found),
            _ => Err(PyRuntimeError::new_err("stopped for no reason")),
        }
    }
}

pub(crate) fn problem(options: &Bound<'_, PyDict>) -> PyResult<matching::Problem> {
    let treated = flags(&item(options, "treated")?)?;
    let columns: usize = item(options, "columns")?.extract()?;
    let x = floats(&item(options, "x")?)?;
    let list = |name: &str| -> PyResult<Option<Vec<f64>>> {
        optional(options, name)?
            .map(|given| floats(&given))
            .transpose()
    };
    let (weights, caliper, matrix) = (list("weights")?, list("caliper")?, list("matrix")?);
    let both = treated.contains(&true) && treated.contains(&false);
    let fits = columns > 0
        && both
        && x.len() == treated.len() * columns
        && u32::try_from(treated.len()).is_ok()
        && weights
            .as_ref()
            .is_none_or(|given| given.len() == treated.len())
        && caliper.as_ref().is_none_or(|given| given.len() == columns)
        && matrix
            .as_ref()
            .is_none_or(|given| given.len() == columns * columns);
    if !fits {
        return Err(PyValueError::new_err("lengths that do not fit together"));
    }
    let metric = match (
        matrix,
        item(options, "metric")?.extract::<String>()?.as_str(),
    ) {
        (Some(matrix), _) => matching::Metric::Matrix(matrix),
        (None, "mahalanobis") => matching::Metric::Mahalanobis,
        (None, _) => matching::Metric::InverseVariance,
    };
    let mut restrictions = Vec::new();
    for (first, second, squared_distance) in
        item(options, "restrict")?.extract::<Vec<(usize, usize, f64)>>()?
    {
        if first >= treated.len() || second >= treated.len() {
            return Err(PyValueError::new_err(
                "a restriction of a row that there is not",
            ));
        }
        restrictions.push(matching::Restriction {
            first,
            second,
            squared_distance,
        });
    }
    let method = match item(options, "method")?.extract::<String>()?.as_str() {
        "tree" => matching::Method::Tree,
        "brute_force" => matching::Method::BruteForce,
        _ => matching::Method::Chosen,
    };
    Ok(matching::Problem {
        x,
        columns,
        treated,
        weights,
        estimand: estimand(options)?,
        matches: item(options, "matches")?.extract()?,
        metric,
        caliper,
        restrictions,
        replace: item(options, "replace")?.extract()?,
        ties: item(options, "ties")?.extract()?,
        tolerance: item(options, "tolerance")?.extract()?,
        rules: rules(options)?,
        threads: item(options, "threads")?.extract()?,
        seed: item(options, "seed")?.extract()?,
        method,
    })
}

/// The widest that the processor has, unless others are named.
pub(crate) fn instructions(options: &Bound<'_, PyDict>) -> PyResult<matching::Instructions> {
    let Some(named) = optional(options, "instructions")? else {
        return Ok(matching::Instructions::best());
    };
    let named: String = named.extract()?;
    matching::Instructions::ALL
        .into_iter()
        .find(|kind| kind.name() == named && kind.available())
        .ok_or_else(|| PyValueError::new_err(format!("no instructions here: {named}")))
}

fn estimand(options: &Bound<'_, PyDict>) -> PyResult<matching::Estimand> {
    match item(options, "estimand")?.extract::<String>()?.as_str() {
        "ATT" => Ok(matching::Estimand::Treated),
        "ATC" => Ok(matching::Estimand::Controls),
        "ATE" => Ok(matching::Estimand::All),
        other => Err(PyValueError::new_err(format!("no estimand: {other}"))),
    }
}

fn rules(options: &Bound<'_, PyDict>) -> PyResult<matching::Rules> {
    let as_in_r: bool = item(options, "r_compatible")?.extract()?;
    Ok(if as_in_r {
        matching::Rules::AsInR
    } else {
        matching::Rules::Correct
    })
}

pub(crate) fn optional<'py>(
    options: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(options.get_item(name)?.filter(|given| !given.is_none()))
}

pub(crate) fn item<'py>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    optional(options, name)?.ok_or_else(|| PyValueError::new_err(format!("without {name}")))
}

pub(crate) fn floats(array: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    PyBuffer::<f64>::get(array)?.to_vec(array.py())
}

pub(crate) fn indices(array: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let given = PyBuffer::<i64>::get(array)?.to_vec(array.py())?;
    given
        .into_iter()
        .map(|row| usize::try_from(row).map_err(|error| PyValueError::new_err(error.to_string())))
        .collect()
}

fn flags(array: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    let given = PyBuffer::<u8>::get(array)?.to_vec(array.py())?;
    Ok(given.into_iter().map(|flag| flag != 0).collect())
}

pub(crate) fn index_bytes<'py>(py: Python<'py>, rows: &[usize]) -> PyResult<Bound<'py, PyBytes>> {
    words(
        py,
        rows.len(),
        rows.iter().map(|&row| (row as u64).to_ne_bytes()),
    )
}

/// Unknown variances are not numbers.
pub(crate) fn variance_bytes<'py>(
    py: Python<'py>,
    variances: &[Option<f64>],
) -> PyResult<Bound<'py, PyBytes>> {
    let values: Vec<f64> = variances
        .iter()
        .map(|variance| variance.unwrap_or(f64::NAN))
        .collect();
    float_bytes(py, &values)
}

pub(crate) fn float_bytes<'py>(py: Python<'py>, values: &[f64]) -> PyResult<Bound<'py, PyBytes>> {
    words(
        py,
        values.len(),
        values.iter().map(|value| value.to_ne_bytes()),
    )
}

/// So many words of eight bytes, written in place.
fn words(
    py: Python<'_>,
    count: usize,
    values: impl Iterator<Item = [u8; 8]>,
) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, 8 * count, |bytes| {
        for (place, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
            *place = value;
        }
        Ok(())
    })
}
