//! Passes the genetic search to Python: its options, its steps and the answers to them.

use equipoise_genoud as genoud;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::flat;
use crate::matching::choose;

/// A genetic search, which requests the values of points from Python.
#[pyclass(module = "equipoise_matching._native")]
pub struct GenoudSearch {
    inner: genoud::Search,
}

/// Number of a generation, values and parameters of its best candidate, median of the first
/// criterion, and number of evaluations so far.
type Generation<'py> = (
    usize,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    f64,
    usize,
);

#[pymethods]
impl GenoudSearch {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<Self> {
        let options = read_options(options)?;
        let inner = py
            .detach(|| genoud::Search::new(options))
            .map_err(to_error)?;
        Ok(Self { inner })
    }

    fn ask<'py>(&self, py: Python<'py>) -> PyResult<(&'static str, Bound<'py, PyArray2<f64>>)> {
        let (step, points) = match self.inner.ask() {
            genoud::Step::Evaluate(points) => ("evaluate", points.as_slice()),
            genoud::Step::Polish(points) => ("polish", points.as_slice()),
            genoud::Step::Gradient(point) => ("gradient", std::slice::from_ref(point)),
            genoud::Step::Done(genoud::Stop::NoImprovement) => ("no improvement", &[][..]),
            genoud::Step::Done(genoud::Stop::GenerationLimit) => ("generation limit", &[][..]),
        };
        Ok((step, PyArray2::from_vec2(py, points)?))
    }

    #[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
    fn tell(&mut self, py: Python<'_>, values: PyReadonlyArray2<'_, f64>) -> PyResult<()> {
        let criteria = values.as_array().ncols();
        let values = flat(&values);
        py.detach(|| self.inner.tell(&values, criteria))
            .map_err(to_error)
    }

    #[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
    fn tell_polished(
        &mut self,
        py: Python<'_>,
        points: PyReadonlyArray2<'_, f64>,
        values: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<()> {
        let (points, values) = (points.as_array(), values.as_array());
        let rows = points.rows().into_iter().zip(values.rows());
        let polished = rows.map(|(point, values)| genoud::Candidate {
            point: point.to_vec(),
            values: values.to_vec(),
        });
        let polished = polished.collect();
        py.detach(|| self.inner.tell_polished(polished))
            .map_err(to_error)
    }

    fn tell_gradient(&mut self, py: Python<'_>, is_small: bool) -> PyResult<()> {
        py.detach(|| self.inner.tell_gradient(is_small))
            .map_err(to_error)
    }

    #[getter]
    fn generation_limit(&self) -> usize {
        self.inner.generation_limit()
    }

    #[getter]
    fn peak_generation(&self) -> usize {
        self.inner.peak_generation()
    }

    #[getter]
    fn population_size(&self) -> usize {
        self.inner.counts().population
    }

    #[getter]
    fn operators(&self) -> [usize; 9] {
        self.inner.counts().by_operator
    }

    /// Returns the finished generations from the index `start` on.
    fn history<'py>(&self, py: Python<'py>, start: usize) -> Vec<Generation<'py>> {
        let records = self.inner.history().iter().skip(start);
        let generation = |record: &genoud::GenerationRecord| {
            let values = PyArray1::from_slice(py, &record.best.values);
            let point = PyArray1::from_slice(py, &record.best.point);
            (
                record.generation,
                values,
                point,
                record.median,
                record.evaluations,
            )
        };
        records.map(generation).collect()
    }
}

/// Reads a Python `equipoise_matching.genetic.options.SearchOptions`.
fn read_options(options: &Bound<'_, PyAny>) -> PyResult<genoud::Options> {
    let field = |name| options.getattr(name);
    let bounds = |name| field(name)?.extract().map(|array: Bounds<'_>| flat(&array));
    let (lower, upper) = (bounds("lower")?, bounds("upper")?);
    let domain = genoud::Domain::new(lower, upper, field("integer")?.extract()?);
    let starts: PyReadonlyArray2<'_, f64> = field("starting_values")?.extract()?;
    let starts = starts.as_array();
    Ok(genoud::Options {
        domain: domain.map_err(PyValueError::new_err)?,
        boundary: boundary(&field("boundary")?)?,
        direction: if field("maximize")?.extract()? {
            genoud::Direction::Maximize
        } else {
            genoud::Direction::Minimize
        },
        population: field("population")?.extract()?,
        generations: field("generations")?.extract()?,
        hard_generation_limit: field("hard_generation_limit")?.extract()?,
        wait_generations: field("wait_generations")?.extract()?,
        solution_tolerance: field("solution_tolerance")?.extract()?,
        starting_values: starts.rows().into_iter().map(|row| row.to_vec()).collect(),
        operators: field("operators")?.extract()?,
        mix: field("mix")?.extract()?,
        polish: field("polish")?.extract()?,
        burn_in: field("burn_in")?.extract()?,
        gradient_check: field("gradient_check")?.extract()?,
        memory: field("memory")?.extract()?,
        generator: generator(&field("generator")?)?,
        seed: field("seed")?.extract()?,
    })
}

type Bounds<'py> = PyReadonlyArray1<'py, f64>;

fn boundary(level: &Bound<'_, PyAny>) -> PyResult<genoud::Boundary> {
    match level.extract()? {
        0 => Ok(genoud::Boundary::RandomPoints),
        1 => Ok(genoud::Boundary::Candidates),
        2 => Ok(genoud::Boundary::AllPoints),
        other => Err(PyValueError::new_err(format!(
            "the boundary enforcement must be 0, 1 or 2, not {other}"
        ))),
    }
}

fn generator(name: &Bound<'_, PyAny>) -> PyResult<genoud::Generator> {
    let choices = [
        ("philox", genoud::Generator::Philox),
        ("tlp", genoud::Generator::Tausworthe),
    ];
    choose(name, &choices)
}

#[allow(clippy::needless_pass_by_value)]
fn to_error(error: genoud::SearchError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
