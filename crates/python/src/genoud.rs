//! The genetic search's face.

use equipoise_genoud as genoud;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// A genetic search that asks for values and is told them.
#[pyclass(module = "equipoise._native")]
pub struct GenoudSearch {
    inner: genoud::Search,
}

/// A generation, its best point and values, the median of the first criterion, evaluations.
type RecordOf<'py> = (usize, Bound<'py, PyBytes>, Bound<'py, PyBytes>, f64, usize);

#[pymethods]
impl GenoudSearch {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = read(options)?;
        let inner = py.detach(|| genoud::Search::new(options)).map_err(told)?;
        Ok(Self { inner })
    }

    fn ask<'py>(&self, py: Python<'py>) -> (&'static str, Bound<'py, PyBytes>) {
        match self.inner.ask() {
            genoud::Step::Evaluate(points) => ("evaluate", bytes(py, points)),
            genoud::Step::Polish(points) => ("polish", bytes(py, points)),
            genoud::Step::Gradient(point) => ("gradient", bytes(py, std::slice::from_ref(point))),
            genoud::Step::Done(genoud::Stop::NoImprovement) => {
                ("no improvement", PyBytes::new(py, &[]))
            }
            genoud::Step::Done(genoud::Stop::GenerationLimit) => {
                ("generation limit", PyBytes::new(py, &[]))
            }
        }
    }

    fn tell(&mut self, py: Python<'_>, values: &Bound<'_, PyAny>, criteria: usize) -> PyResult<()> {
        let values = PyBuffer::<f64>::get(values)?.to_vec(py)?;
        py.detach(|| self.inner.tell(&values, criteria))
            .map_err(told)
    }

    fn tell_polished(
        &mut self,
        py: Python<'_>,
        points: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
        rows: usize,
    ) -> PyResult<()> {
        let points = PyBuffer::<f64>::get(points)?.to_vec(py)?;
        let values = PyBuffer::<f64>::get(values)?.to_vec(py)?;
        let fits = rows > 0
            && !points.is_empty()
            && !values.is_empty()
            && points.len() % rows == 0
            && values.len() % rows == 0;
        if !fits {
            return Err(PyValueError::new_err("lengths that do not fit together"));
        }
        let polished = points
            .chunks_exact(points.len() / rows)
            .zip(values.chunks_exact(values.len() / rows))
            .map(|(point, values)| genoud::Individual {
                point: point.to_vec(),
                values: values.to_vec(),
            })
            .collect();
        py.detach(|| self.inner.tell_polished(polished))
            .map_err(told)
    }

    fn tell_gradient(&mut self, py: Python<'_>, small: bool) -> PyResult<()> {
        py.detach(|| self.inner.tell_gradient(small)).map_err(told)
    }

    #[getter]
    fn generation(&self) -> usize {
        self.inner.generation()
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

    /// The points and the values of all individuals, the best first.
    fn population<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
        let all = self.inner.population();
        let points: Vec<Vec<f64>> = all.iter().map(|one| one.point.clone()).collect();
        let values: Vec<Vec<f64>> = all.iter().map(|one| one.values.clone()).collect();
        (bytes(py, &points), bytes(py, &values))
    }

    /// The generations that ended, from this place in the list.
    fn history<'py>(&self, py: Python<'py>, from: usize) -> Vec<RecordOf<'py>> {
        self.inner
            .history()
            .iter()
            .skip(from)
            .map(|record| {
                (
                    record.generation,
                    bytes(py, std::slice::from_ref(&record.best.point)),
                    bytes(py, std::slice::from_ref(&record.best.values)),
                    record.median,
                    record.evaluations,
                )
            })
            .collect()
    }
}

fn read(options: &Bound<'_, PyDict>) -> PyResult<genoud::Options> {
    let floats = |name: &str| -> PyResult<Vec<f64>> {
        PyBuffer::<f64>::get(&item(options, name)?)?.to_vec(options.py())
    };
    let truth = |name: &str| -> PyResult<bool> { item(options, name)?.extract() };
    let count = |name: &str| -> PyResult<usize> { item(options, name)?.extract() };
    let lower = floats("lower")?;
    let parameters = lower.len();
    let domain = genoud::Domain::new(lower, floats("upper")?, truth("integer")?)
        .map_err(PyValueError::new_err)?;
    let boundary = match count("boundary")? {
        0 => genoud::Boundary::Anything,
        1 => genoud::Boundary::Partial,
        2 => genoud::Boundary::Never,
        other => {
            return Err(PyValueError::new_err(format!(
                "boundary enforcement is 0, 1 or 2, not {other}"
            )));
        }
    };
    let generator = match item(options, "generator")?.extract::<String>()?.as_str() {
        "philox" => genoud::Generator::Philox,
        "tlp" => genoud::Generator::Tausworthe,
        other => {
            return Err(PyValueError::new_err(format!(
                "the generator is philox or tlp, not {other}"
            )));
        }
    };
    Ok(genoud::Options {
        domain,
        boundary,
        direction: if truth("maximize")? {
            genoud::Direction::Maximize
        } else {
            genoud::Direction::Minimize
        },
        population: count("population")?,
        generations: count("generations")?,
        hard_generation_limit: truth("hard_generation_limit")?,
        wait_generations: count("wait_generations")?,
        solution_tolerance: item(options, "solution_tolerance")?.extract()?,
        starting_values: floats("starting_values")?
            .chunks(parameters)
            .map(<[f64]>::to_vec)
            .collect(),
        operators: item(options, "operators")?.extract()?,
        mix: item(options, "mix")?.extract()?,
        polish: truth("polish")?,
        burn_in: count("burn_in")?,
        gradient_check: truth("gradient_check")?,
        memory: truth("memory")?,
        generator,
        seed: item(options, "seed")?.extract()?,
    })
}

fn item<'py>(options: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    options
        .get_item(name)?
        .ok_or_else(|| PyKeyError::new_err(name.to_owned()))
}

#[allow(clippy::needless_pass_by_value)]
fn told(error: genoud::Unusable) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// All numbers of the rows, one row after another.
fn bytes<'py>(py: Python<'py>, rows: &[Vec<f64>]) -> Bound<'py, PyBytes> {
    let all: Vec<u8> = rows
        .iter()
        .flatten()
        .flat_map(|value| value.to_ne_bytes())
        .collect();
    PyBytes::new(py, &all)
}
