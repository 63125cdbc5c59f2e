//! Passes minimum-cost pairs to Python.

use equipoise_matching::cheap::{CheapSearch, PricedUnits};
use equipoise_matching::flow::{Degrees, PairFlow as Flow};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{flat, indices, row_numbers};
use crate::progress::ProgressReporter;

/// Number of searched paths between two checks for Ctrl-C.
const SEARCHES: usize = 64;

/// First units and second units of the pairs in a solution.
type UnitPairs = (Py<PyArray1<i64>>, Py<PyArray1<i64>>);
/// An arm: smallest and largest numbers of pairs, and numbers of rows.
type Arm<'py> = (
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
    PyReadonlyArray1<'py, i64>,
);

/// Minimum-cost pairs in a sparse graph that may grow.
#[pyclass(module = "equipoise_matching._native")]
pub struct PairFlow {
    flow: Flow,
    sizes: [usize; 2],
}

#[pymethods]
impl PairFlow {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
    fn new(
        first: Arm<'_>,
        second: Arm<'_>,
        max_omitted: (i64, i64),
        penalty: i64,
    ) -> PyResult<Self> {
        let degrees = |arm: &Arm<'_>, max_omitted: i64| {
            let degrees = Degrees {
                minimum: flat(&arm.0),
                maximum: flat(&arm.1),
                rows: flat(&arm.2),
                max_omitted,
            };
            let count = degrees.minimum.len();
            if degrees.maximum.len() == count && degrees.rows.len() == count {
                return Ok(degrees);
            }
            Err(PyValueError::new_err("the arrays have different lengths"))
        };
        let (first, second) = (
            degrees(&first, max_omitted.0)?,
            degrees(&second, max_omitted.1)?,
        );
        Ok(Self {
            sizes: [first.minimum.len(), second.minimum.len()],
            flow: Flow::new(first, second, penalty),
        })
    }

    /// Adds pairs and solves. An exception, such as Ctrl-C, stops the work.
    #[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
    fn add(
        &mut self,
        py: Python<'_>,
        first: PyReadonlyArray1<'_, i64>,
        second: PyReadonlyArray1<'_, i64>,
        cost: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<()> {
        let costs: Vec<i64> = flat(&cost);
        let units = [flat(&first), flat(&second)];
        let fits = units.iter().zip(self.sizes).all(|(units, size)| {
            units.len() == costs.len()
                && units
                    .iter()
                    .all(|&unit| usize::try_from(unit).is_ok_and(|unit| unit < size))
        });
        if !fits || costs.iter().any(|&cost| cost < 0) {
            return Err(PyValueError::new_err("the pairs do not fit the units"));
        }
        let [first, second] = units;
        let pairs = first.into_iter().zip(second).zip(costs);
        // The check above ensures that the numbers fit.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        self.flow
            .add(pairs.map(|((first, second), cost)| (first as u32, second as u32, cost)));
        let flow = &mut self.flow;
        py.detach(|| {
            let progress = ProgressReporter::new(None);
            let mut result = None;
            while progress.report(0, 0) {
                if flow.solve(SEARCHES) {
                    result = Some(());
                    break;
                }
            }
            progress.finish(result)
        })
    }

    /// The pairs of the solution, sorted, and how often each is in it.
    fn pairs(&self, py: Python<'_>) -> (UnitPairs, Py<PyArray1<i64>>) {
        let used = || self.flow.arcs().iter().filter(|arc| arc.flow > 0);
        let flows: Vec<i64> = used().map(|arc| arc.flow).collect();
        let units = (
            row_numbers(py, used().map(|arc| arc.first as usize).collect()),
            row_numbers(py, used().map(|arc| arc.second as usize).collect()),
        );
        (units, PyArray1::from_vec(py, flows).unbind())
    }

    /// The prices of the units of an arm: 0 for the first, 1 for the second.
    fn prices(&self, py: Python<'_>, arm: usize) -> PyResult<Py<PyArray1<i64>>> {
        check_arm(arm)?;
        Ok(PyArray1::from_slice(py, self.flow.prices(arm)).unbind())
    }

    /// The numbers of pairs that the units of an arm lack.
    fn missing(&self, py: Python<'_>, arm: usize) -> PyResult<Py<PyArray1<i64>>> {
        check_arm(arm)?;
        Ok(PyArray1::from_slice(py, self.flow.missing(arm)).unbind())
    }
}

fn check_arm(arm: usize) -> PyResult<()> {
    if arm < 2 {
        return Ok(());
    }
    Err(PyValueError::new_err("an arm is 0 or 1"))
}

/// Finds pairs with distance < price + price that may not be known yet.
///
/// An arm is a tuple of points, values in columns with a caliper, prices and radii.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
pub fn cheap_pairs<'py>(
    py: Python<'py>,
    first: PricedArm<'py>,
    second: PricedArm<'py>,
    calipers: PyReadonlyArray1<'py, f64>,
    limits: PyReadonlyArray1<'py, i64>,
    max_distance: f64,
) -> PyResult<UnitPairs> {
    let dimensions = first.0.shape()[1];
    let calipers: Vec<f64> = flat(&calipers);
    let limits = indices(&limits)?;
    let fits = [&first, &second].iter().all(|arm| {
        let count = arm.0.shape()[0];
        arm.0.shape()[1] == dimensions
            && arm.1.shape() == [count, calipers.len()]
            && arm.2.len() == count
            && arm.3.len() == count
    });
    if !fits || limits.len() != first.2.len() {
        return Err(PyValueError::new_err("the arrays have different lengths"));
    }
    let copies =
        [&first, &second].map(|arm| (flat(&arm.0), flat(&arm.1), flat(&arm.2), flat(&arm.3)));
    let units = |arm: usize| {
        let (points, limited, prices, radii): &(Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) =
            &copies[arm];
        PricedUnits {
            points,
            limited,
            prices,
            radii,
        }
    };
    let search = CheapSearch {
        dimensions,
        calipers: &calipers,
        first: units(0),
        second: units(1),
        limits: &limits,
        max_distance,
        threads: 0,
    };
    let pairs = py.detach(|| {
        let progress = ProgressReporter::new(None);
        let result = search.pairs(&|done, total| progress.report(done, total));
        progress.finish(result)
    })?;
    Ok((
        row_numbers(py, pairs.iter().map(|pair| pair.0 as usize).collect()),
        row_numbers(py, pairs.iter().map(|pair| pair.1 as usize).collect()),
    ))
}

/// Points, values in columns with a caliper, prices and radii.
type PricedArm<'py> = (
    PyReadonlyArray2<'py, f64>,
    PyReadonlyArray2<'py, f64>,
    PyReadonlyArray1<'py, f64>,
    PyReadonlyArray1<'py, f64>,
);
