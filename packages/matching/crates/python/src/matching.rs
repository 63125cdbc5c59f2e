//! Passes nearest-neighbour matching and the estimates of effects to Python.

use equipoise_matching as matching;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{array, flat, indices, row_numbers};
use crate::progress::ProgressReporter;

/// A Python `equipoise_matching.matching.units.Units`.
#[derive(FromPyObject)]
pub struct Units<'py> {
    x: PyReadonlyArray2<'py, f64>,
    treated: PyReadonlyArray1<'py, bool>,
    outcome: Option<PyReadonlyArray1<'py, f64>>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
}

/// A Python `equipoise_matching.matching.options.MatchOptions`.
#[derive(FromPyObject)]
pub struct MatchOptions<'py> {
    #[pyo3(from_py_with = estimand)]
    estimand: matching::Estimand,
    matches: usize,
    #[pyo3(from_py_with = metric)]
    metric: matching::Metric,
    caliper: Option<PyReadonlyArray2<'py, f64>>,
    restrictions: Vec<(usize, usize, f64)>,
    replace: bool,
    ties: bool,
    tolerance: f64,
    #[pyo3(from_py_with = rules)]
    r_compatible: matching::Rules,
    threads: usize,
    seed: u64,
    #[pyo3(from_py_with = search)]
    search: matching::Method,
    instructions: Option<String>,
}

impl MatchOptions<'_> {
    /// Returns the instructions with the given name, or without a name the widest available ones.
    pub fn instructions(&self) -> PyResult<matching::Instructions> {
        let Some(name) = &self.instructions else {
            return Ok(matching::Instructions::best());
        };
        matching::Instructions::ALL
            .into_iter()
            .find(|known| known.name() == name && known.is_available())
            .ok_or_else(|| PyValueError::new_err(format!("this processor lacks {name}")))
    }
}

/// Matched pairs: rows of units (`query`), of their matches (`matched`) and of `dropped` units.
#[pyclass(module = "equipoise_matching._native", frozen, get_all)]
pub struct Pairs {
    query: Py<PyArray1<i64>>,
    matched: Py<PyArray1<i64>>,
    weights: Py<PyArray1<f64>>,
    dropped: Py<PyArray1<i64>>,
}

#[pymethods]
impl Pairs {
    #[new]
    fn new(
        query: Py<PyArray1<i64>>,
        matched: Py<PyArray1<i64>>,
        weights: Py<PyArray1<f64>>,
        dropped: Py<PyArray1<i64>>,
    ) -> Self {
        Self {
            query,
            matched,
            weights,
            dropped,
        }
    }
}

impl Pairs {
    fn from_native(py: Python<'_>, pairs: matching::Pairs) -> Self {
        Self {
            query: row_numbers(py, pairs.query),
            matched: row_numbers(py, pairs.matched),
            weights: array(py, pairs.weight),
            dropped: row_numbers(py, pairs.dropped),
        }
    }

    fn to_native(&self, py: Python<'_>) -> PyResult<matching::Pairs> {
        Ok(matching::Pairs {
            query: indices(&self.query.bind(py).try_readonly()?)?,
            matched: indices(&self.matched.bind(py).try_readonly()?)?,
            weight: flat(&self.weights.bind(py).try_readonly()?),
            dropped: Vec::new(),
        })
    }
}

/// The effect and its errors, in units of the outcome.
#[pyclass(module = "equipoise_matching._native", frozen, get_all)]
pub struct Estimate {
    effect: f64,
    unadjusted: f64,
    population_variance: f64,
    sample_variance: f64,
    standard_error_of_pairs: f64,
    conditional_error: f64,
}

/// Matches units to their nearest neighbours.
#[pyclass(module = "equipoise_matching._native", frozen)]
pub struct Matcher {
    inner: matching::Matcher,
    outcome: Option<Vec<f64>>,
}

#[pymethods]
impl Matcher {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
    fn new(py: Python<'_>, units: Units<'_>, options: MatchOptions<'_>) -> PyResult<Self> {
        let problem = problem(&units, &options)?;
        let instructions = options.instructions()?;
        Ok(Self {
            inner: py.detach(|| matching::Matcher::with_instructions(problem, instructions)),
            outcome: units.outcome.as_ref().map(flat),
        })
    }

    #[getter]
    fn uses_tree(&self) -> bool {
        self.inner.uses_tree()
    }

    fn pairs(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<Pairs> {
        let progress = ProgressReporter::new(progress);
        let report = |done, total| progress.report(done, total);
        let pairs = py.detach(|| self.inner.pairs(&report));
        Ok(Pairs::from_native(py, progress.finish(pairs)?))
    }

    #[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
    fn variances(
        &self,
        py: Python<'_>,
        pairs: PyRef<'_, Pairs>,
        neighbors: f64,
    ) -> PyResult<Py<PyArray1<f64>>> {
        let Some(outcome) = &self.outcome else {
            return Err(PyValueError::new_err("the units have no outcome"));
        };
        let pairs = pairs.to_native(py)?;
        let fits = |&row: &usize| row < outcome.len();
        let indices = pairs.query.iter().chain(&pairs.matched);
        check(
            indices.into_iter().all(fits),
            "a pair has a row number that no unit has",
        )?;
        let progress = ProgressReporter::new(None);
        let report = |done, total| progress.report(done, total);
        let variances = py.detach(|| self.inner.variances(outcome, &pairs, neighbors, &report));
        Ok(variance_array(py, progress.finish(variances)?))
    }
}

/// Matches inside each stratum. Row s of `options.caliper` has the calipers of stratum s.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
pub fn match_strata(
    py: Python<'_>,
    units: Units<'_>,
    options: MatchOptions<'_>,
    strata: PyReadonlyArray1<'_, i64>,
    count: usize,
    neighbors: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Pairs, Option<Py<PyArray1<f64>>>)> {
    let problem = problem(&units, &options)?;
    let stratum_of_row = indices(&strata)?;
    let calipers = options.caliper.as_ref().map(flat);
    let outcome = units.outcome.as_ref().map(flat);
    let fits = stratum_of_row.len() == problem.rows()
        && stratum_of_row.iter().all(|&stratum| stratum < count)
        && calipers
            .as_ref()
            .is_none_or(|calipers| calipers.len() == count * problem.columns);
    check(fits, "the strata or their calipers do not fit the units")?;
    let outcomes = outcome.as_deref().zip(neighbors);
    let outcomes = outcomes.map(|(values, neighbours)| matching::Outcomes { values, neighbours });
    let strata = matching::Strata {
        stratum_of_row: &stratum_of_row,
        count,
        calipers: calipers.as_deref(),
    };
    let progress = ProgressReporter::new(progress);
    let report = |done, total| progress.report(done, total);
    let matched = py.detach(|| strata.match_all(&problem, outcomes.as_ref(), &report));
    let matched = progress.finish(matched)?;
    let variances = outcomes.map(|_| variance_array(py, matched.variances));
    Ok((Pairs::from_native(py, matched.pairs), variances))
}

/// Estimates the effect and its errors from pairs of the units.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
pub fn estimate_effect(
    py: Python<'_>,
    units: Units<'_>,
    options: MatchOptions<'_>,
    pairs: &Bound<'_, Pairs>,
    covariates: Option<PyReadonlyArray2<'_, f64>>,
    variances: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<Estimate> {
    let pairs = pairs.get().to_native(py)?;
    let treated = flat(&units.treated);
    let rows = treated.len();
    let outcome = units.outcome.as_ref().map_or_else(Vec::new, flat);
    let weights = units.weights.as_ref().map_or_else(|| vec![1.0; rows], flat);
    let fits = outcome.len() == rows
        && weights.len() == rows
        && pairs
            .query
            .iter()
            .chain(&pairs.matched)
            .all(|&row| row < rows)
        && pairs.query.len() == pairs.matched.len()
        && pairs.query.len() == pairs.weight.len()
        && covariates
            .as_ref()
            .is_none_or(|array| array.shape()[0] == rows)
        && variances.as_ref().is_none_or(|array| array.len() == rows);
    check(fits, "array lengths differ or a row number is too large")?;
    let covariates = covariates.map(|array| (flat(&array), array.shape()[1]));
    let known = |variance: f64| (!variance.is_nan()).then_some(variance);
    let variances = variances.map(|array| flat(&array).into_iter().map(known));
    let variances: Option<Vec<Option<f64>>> = variances.map(Iterator::collect);
    let sample = matching::Sample {
        treated: &treated,
        outcome: &outcome,
        weights: &weights,
        estimand: options.estimand,
        rules: options.r_compatible,
        covariates: covariates
            .as_ref()
            .map(|(values, columns)| (values.as_slice(), *columns)),
        variances: variances.as_deref(),
    };
    let estimate = py.detach(|| sample.estimate(&pairs));
    Ok(Estimate {
        effect: estimate.effect,
        unadjusted: estimate.unadjusted,
        population_variance: estimate.population_variance,
        sample_variance: estimate.sample_variance,
        standard_error_of_pairs: estimate.standard_error_of_pairs,
        conditional_error: estimate.conditional_error,
    })
}

/// Checks the lengths of the units and options, and copies them into a matching problem.
pub fn problem(units: &Units<'_>, options: &MatchOptions<'_>) -> PyResult<matching::Problem> {
    let (treated, x) = (flat(&units.treated), flat(&units.x));
    let (rows, columns) = (treated.len(), units.x.shape()[1]);
    let weights = units.weights.as_ref().map(flat);
    let caliper = options.caliper.as_ref().map(flat);
    let restriction = |&(first, second, squared_distance)| matching::Restriction {
        first,
        second,
        squared_distance,
    };
    let restrictions: Vec<_> = options.restrictions.iter().map(restriction).collect();
    let fits = columns > 0
        && treated.contains(&true)
        && treated.contains(&false)
        && x.len() == rows * columns
        && u32::try_from(rows).is_ok()
        && weights.as_ref().is_none_or(|weights| weights.len() == rows)
        && options
            .caliper
            .as_ref()
            .is_none_or(|caliper| caliper.shape()[1] == columns)
        && match &options.metric {
            matching::Metric::Matrix(matrix) => matrix.len() == columns * columns,
            _ => true,
        }
        && restrictions
            .iter()
            .all(|pair| pair.first.max(pair.second) < rows);
    check(fits, "array lengths differ or a row number is too large")?;
    Ok(matching::Problem {
        x,
        columns,
        treated,
        weights,
        estimand: options.estimand,
        matches: options.matches,
        metric: options.metric.clone(),
        caliper,
        restrictions,
        replace: options.replace,
        ties: options.ties,
        tolerance: options.tolerance,
        rules: options.r_compatible,
        threads: options.threads,
        seed: options.seed,
        method: options.search,
    })
}

/// Raises `ValueError` with the message unless the data fit together.
pub fn check(fits: bool, message: &'static str) -> PyResult<()> {
    fits.then_some(())
        .ok_or_else(|| PyValueError::new_err(message))
}

/// Returns the value of the choice with this name.
pub fn choose<T: Copy>(name: &Bound<'_, PyAny>, choices: &[(&str, T)]) -> PyResult<T> {
    let name: String = name.extract()?;
    let choice = choices.iter().find(|(known, _)| *known == name);
    choice
        .map(|&(_, value)| value)
        .ok_or_else(|| PyValueError::new_err(format!("{name:?} is not one of the choices")))
}

fn estimand(name: &Bound<'_, PyAny>) -> PyResult<matching::Estimand> {
    let choices = [
        ("ATT", matching::Estimand::Treated),
        ("ATC", matching::Estimand::Controls),
        ("ATE", matching::Estimand::All),
    ];
    choose(name, &choices)
}

/// Reads a weight matrix, or the name of a metric.
pub fn metric(value: &Bound<'_, PyAny>) -> PyResult<matching::Metric> {
    if let Ok(matrix) = value.extract::<PyReadonlyArray2<'_, f64>>() {
        return Ok(matching::Metric::Matrix(flat(&matrix)));
    }
    let is_mahalanobis = choose(value, &[("inverse_variance", false), ("mahalanobis", true)])?;
    Ok(if is_mahalanobis {
        matching::Metric::Mahalanobis
    } else {
        matching::Metric::InverseVariance
    })
}

fn rules(as_in_r: &Bound<'_, PyAny>) -> PyResult<matching::Rules> {
    Ok(if as_in_r.extract()? {
        matching::Rules::AsInR
    } else {
        matching::Rules::Correct
    })
}

fn search(name: &Bound<'_, PyAny>) -> PyResult<matching::Method> {
    let choices = [
        ("chosen", matching::Method::Automatic),
        ("brute_force", matching::Method::BruteForce),
        ("tree", matching::Method::Tree),
    ];
    choose(name, &choices)
}

/// Makes a Python array of variances, in which NaN is an unknown variance.
fn variance_array(py: Python<'_>, variances: Vec<Option<f64>>) -> Py<PyArray1<f64>> {
    let values = variances
        .into_iter()
        .map(|variance| variance.unwrap_or(f64::NAN));
    array(py, values.collect())
}
