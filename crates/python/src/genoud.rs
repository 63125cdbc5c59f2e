//! The genetic search: typed options in; points out, their values in.

use equipoise_genoud as genoud;
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::flat;
use crate::matching::choose;

/// The options of `equipoise.genoud.options.SearchOptions`.
#[derive(FromPyObject)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings, as in the engine's options"
)]
pub struct SearchOptions<'py> {
    lower: PyReadonlyArray1<'py, f64>,
    upper: PyReadonlyArray1<'py, f64>,
    starting_values: PyReadonlyArray2<'py, f64>,
    maximize: bool,
    population: usize,
    generations: usize,
    wait_generations: usize,
    hard_generation_limit: bool,
    #[pyo3(from_py_with = boundary)]
    boundary: genoud::Boundary,
    integer: bool,
    polish: bool,
    gradient_check: bool,
    burn_in: usize,
    operators: [f64; 9],
    mix: Option<f64>,
    solution_tolerance: f64,
    memory: bool,
    #[pyo3(from_py_with = generator)]
    generator: genoud::Generator,
    seed: u64,
}

/// A genetic search that asks for values and is told them.
#[pyclass(module = "equipoise._native")]
pub struct GenoudSearch {
    inner: genoud::Search,
}

/// Number of a generation, the values of its best point and that point, the median of the first
/// criterion, and the evaluations so far.
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
    #[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it has read.
    fn new(py: Python<'_>, options: SearchOptions<'_>) -> PyResult<Self> {
        let options = options.to_native()?;
        let inner = py.detach(|| genoud::Search::new(options));
        Ok(Self {
            inner: inner.map_err(to_error)?,
        })
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

    #[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it has read.
    fn tell(&mut self, py: Python<'_>, values: PyReadonlyArray2<'_, f64>) -> PyResult<()> {
        let criteria = values.as_array().ncols();
        let values = flat(&values);
        py.detach(|| self.inner.tell(&values, criteria))
            .map_err(to_error)
    }

    #[allow(clippy::needless_pass_by_value)] // PyO3 hands over what it has read.
    fn tell_polished(
        &mut self,
        py: Python<'_>,
        points: PyReadonlyArray2<'_, f64>,
        values: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<()> {
        let (points, values) = (points.as_array(), values.as_array());
        let polished = points
            .rows()
            .into_iter()
            .zip(values.rows())
            .map(|(point, values)| genoud::Individual {
                point: point.to_vec(),
                values: values.to_vec(),
            })
            .collect();
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
        self.inner.counts().each
    }

    /// Returns the finished generations, from this place in the list.
    fn history<'py>(&self, py: Python<'py>, from: usize) -> Vec<Generation<'py>> {
        let records = self.inner.history().iter().skip(from);
        records
            .map(|record| {
                (
                    record.generation,
                    PyArray1::from_slice(py, &record.best.values),
                    PyArray1::from_slice(py, &record.best.point),
                    record.median,
                    record.evaluations,
                )
            })
            .collect()
    }
}

impl SearchOptions<'_> {
    fn to_native(&self) -> PyResult<genoud::Options> {
        let domain = genoud::Domain::new(flat(&self.lower), flat(&self.upper), self.integer)
            .map_err(PyValueError::new_err)?;
        let starts = self.starting_values.as_array();
        Ok(genoud::Options {
            domain,
            boundary: self.boundary,
            direction: if self.maximize {
                genoud::Direction::Maximize
            } else {
                genoud::Direction::Minimize
            },
            population: self.population,
            generations: self.generations,
            hard_generation_limit: self.hard_generation_limit,
            wait_generations: self.wait_generations,
            solution_tolerance: self.solution_tolerance,
            starting_values: starts.rows().into_iter().map(|row| row.to_vec()).collect(),
            operators: self.operators,
            mix: self.mix,
            polish: self.polish,
            burn_in: self.burn_in,
            gradient_check: self.gradient_check,
            memory: self.memory,
            generator: self.generator,
            seed: self.seed,
        })
    }
}

fn boundary(given: &Bound<'_, PyAny>) -> PyResult<genoud::Boundary> {
    match given.extract()? {
        0 => Ok(genoud::Boundary::Anything),
        1 => Ok(genoud::Boundary::Partial),
        2 => Ok(genoud::Boundary::Never),
        other => Err(PyValueError::new_err(format!(
            "boundary enforcement is 0, 1 or 2, not {other}"
        ))),
    }
}

fn generator(given: &Bound<'_, PyAny>) -> PyResult<genoud::Generator> {
    let choices = [
        ("philox", genoud::Generator::Philox),
        ("tlp", genoud::Generator::Tausworthe),
    ];
    choose(given, &choices)
}

#[allow(clippy::needless_pass_by_value)]
fn to_error(error: genoud::Unusable) -> PyErr {
    PyValueError::new_err(error.to_string())
}
