//! Passes the designs to Python: matching on a score, and generalised full matching.

use equipoise_matching as matching;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::flat;
use crate::matching::{check, metric};
use crate::progress::ProgressReporter;

/// Stratum of a row that a design leaves out.
const LEFT_OUT: i64 = -1;

/// A Python `equipoise_matching.designs.nearest.ScoreProblem`.
#[derive(FromPyObject)]
pub struct ScoreProblem<'py> {
    score: PyReadonlyArray1<'py, f64>,
    is_taker: PyReadonlyArray1<'py, bool>,
    cells: Option<PyReadonlyArray1<'py, i64>>,
    matches: usize,
    caliper: f64,
    order: String,
    replace: bool,
    seed: u64,
    threads: usize,
}

/// A Python `equipoise_matching.designs.quick.QuickProblem`.
#[derive(FromPyObject)]
pub struct QuickProblem<'py> {
    x: PyReadonlyArray2<'py, f64>,
    #[pyo3(from_py_with = metric)]
    metric: matching::Metric,
    arm: PyReadonlyArray1<'py, i64>,
    arm_sizes: Vec<usize>,
    size: usize,
    is_target: PyReadonlyArray1<'py, bool>,
    caliper: f64,
    threads: usize,
}

/// Rows of takers and of their donors.
type TakersAndDonors = (Py<PyArray1<i64>>, Py<PyArray1<i64>>);

/// Matches on a score. Returns the taker and the donor of each pair, in the order of the takers.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
pub fn match_on_score(
    py: Python<'_>,
    problem: ScoreProblem<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<TakersAndDonors> {
    let (score, is_taker) = (flat(&problem.score), flat(&problem.is_taker));
    let cells = problem.cells.as_ref().map(numbers).transpose()?;
    let fits = score.len() == is_taker.len()
        && u32::try_from(score.len()).is_ok()
        && score.iter().all(|value| value.is_finite())
        && cells
            .as_ref()
            .is_none_or(|cells| cells.len() == score.len());
    check(fits, "array lengths differ or a score is not finite")?;
    let order = match problem.order.as_str() {
        "largest" => matching::ScoreOrder::Largest,
        "smallest" => matching::ScoreOrder::Smallest,
        "closest" => matching::ScoreOrder::Closest,
        "random" => matching::ScoreOrder::Random(problem.seed),
        "data" => matching::ScoreOrder::Data,
        other => return Err(PyValueError::new_err(format!("there is no order {other}"))),
    };
    let (matches, caliper, replace) = (problem.matches, problem.caliper, problem.replace);
    let threads = problem.threads;
    let progress = ProgressReporter::new(progress);
    let report = |done, total| progress.report(done, total);
    let pairs = py.detach(|| {
        let problem = matching::ScoreProblem {
            score: &score,
            is_taker: &is_taker,
            cells: cells.as_deref(),
            matches,
            caliper,
            order,
            replace,
            threads,
        };
        problem.pairs(&report)
    });
    let (takers, donors): (Vec<i64>, Vec<i64>) = progress
        .finish(pairs)?
        .into_iter()
        .map(|(taker, donor)| (i64::from(taker), i64::from(donor)))
        .unzip();
    Ok((
        PyArray1::from_vec(py, takers).unbind(),
        PyArray1::from_vec(py, donors).unbind(),
    ))
}

/// Divides rows into strata. Returns the stratum of each row, the largest distance of a row from
/// the seed of its stratum, and a lower bound of the largest distance in any strata.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 passes owned values.
pub fn quick_strata(
    py: Python<'_>,
    problem: QuickProblem<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Py<PyArray1<i64>>, f64, f64)> {
    let (x, arm, is_target) = (
        flat(&problem.x),
        numbers(&problem.arm)?,
        flat(&problem.is_target),
    );
    let (rows, columns) = (arm.len(), problem.x.shape()[1]);
    let mut rows_of_arm = vec![0; problem.arm_sizes.len()];
    for &arm in &arm {
        let count = rows_of_arm.get_mut(arm as usize);
        *count.ok_or_else(|| PyValueError::new_err("an arm has no size"))? += 1;
    }
    let sizes = problem.arm_sizes.iter();
    let fits = columns > 0
        && x.len() == rows * columns
        && is_target.len() == rows
        && u32::try_from(rows).is_ok()
        && sizes
            .clone()
            .zip(&rows_of_arm)
            .all(|(&size, &rows)| 0 < size && size <= rows)
        && sizes.sum::<usize>() <= problem.size
        && problem.size <= rows
        && match &problem.metric {
            matching::Metric::Matrix(matrix) => matrix.len() == columns * columns,
            _ => true,
        };
    check(fits, "array lengths differ or an arm has too few rows")?;
    let quick = matching::QuickProblem {
        problem: matching::Problem {
            x,
            columns,
            treated: vec![false; rows],
            weights: None,
            estimand: matching::Estimand::All,
            matches: 1,
            metric: problem.metric,
            caliper: None,
            restrictions: Vec::new(),
            replace: true,
            ties: true,
            tolerance: 0.0,
            rules: matching::Rules::Correct,
            threads: problem.threads,
            seed: 0,
            method: matching::Method::Automatic,
        },
        arm,
        arm_sizes: problem.arm_sizes,
        size: problem.size,
        is_target,
        caliper: problem.caliper,
    };
    let progress = ProgressReporter::new(progress);
    let report = |done, total| progress.report(done, total);
    let strata = py.detach(|| quick.strata(&report));
    let strata = progress.finish(strata)?;
    let numbers = strata.stratum.into_iter();
    let numbers = numbers.map(|stratum| stratum.map_or(LEFT_OUT, i64::from));
    Ok((
        PyArray1::from_vec(py, numbers.collect()).unbind(),
        strata.largest_distance,
        strata.lower_bound,
    ))
}

/// Copies small whole numbers, such as the arms or the cells of rows.
fn numbers(array: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<u32>> {
    let values = array.as_array();
    let numbers: Result<Vec<u32>, _> = values.iter().map(|&value| u32::try_from(value)).collect();
    numbers.map_err(|error| PyValueError::new_err(error.to_string()))
}
