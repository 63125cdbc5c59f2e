//! The face of matching inside strata.

use equipoise_matching as matching;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::matching::{
    Teller, float_bytes, floats, index_bytes, indices, item, optional, problem, variance_bytes,
};

/// Rows of queries and matches, weights, rows that were dropped, and variances of the outcomes.
type StratifiedBytes<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

/// Matches inside each stratum. `options` are those of the engine with `strata` (of each row),
/// `stratum_count`, `calipers` (stratum after stratum) and, for variances, `outcome` and
/// `neighbours`.
#[pyfunction]
pub fn matching_strata<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<StratifiedBytes<'py>> {
    let problem = problem(options)?;
    let of_row = indices(&item(options, "strata")?)?;
    let count: usize = item(options, "stratum_count")?.extract()?;
    let calipers = optional(options, "calipers")?
        .map(|given| floats(&given))
        .transpose()?;
    let outcome = optional(options, "outcome")?
        .map(|given| floats(&given))
        .transpose()?;
    let neighbours: f64 = item(options, "neighbours")?.extract()?;
    let rows = problem.rows();
    let fits = of_row.len() == rows
        && of_row.iter().all(|&stratum| stratum < count)
        && calipers
            .as_ref()
            .is_none_or(|given| given.len() == count * problem.columns)
        && outcome.as_ref().is_none_or(|given| given.len() == rows);
    if !fits {
        return Err(PyValueError::new_err(
            "lengths or strata that do not fit together",
        ));
    }
    let outcomes = outcome
        .as_deref()
        .map(|values| matching::Outcomes { values, neighbours });
    let strata = matching::Strata {
        of_row: &of_row,
        count,
        calipers: calipers.as_deref(),
    };
    let teller = Teller::new(progress);
    let tell = |done, of| teller.tell(done, of);
    let matched = py.detach(|| strata.matched(&problem, outcomes.as_ref(), &tell));
    let matched = teller.outcome(matched)?;
    Ok((
        index_bytes(py, &matched.pairs.query)?,
        index_bytes(py, &matched.pairs.matched)?,
        float_bytes(py, &matched.pairs.weight)?,
        index_bytes(py, &matched.pairs.dropped)?,
        variance_bytes(py, &matched.variances)?,
    ))
}
