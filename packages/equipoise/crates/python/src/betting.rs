//! The Python classes and functions that compare two conditions by bets. `_native.pyi` documents
//! them; `equipoise-verdict` computes the results.

use equipoise_verdict as verdict;
use equipoise_verdict::fraction::FractionInterval;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The blocks of one pair of conditions, and the bets on the coin that ordered them.
#[pyclass(module = "equipoise._native")]
pub struct BettingSequence {
    inner: verdict::BettingSequence,
}

#[pymethods]
impl BettingSequence {
    #[new]
    #[pyo3(signature = (differences, orders, tolerances, readings = None))]
    fn new(
        py: Python<'_>,
        differences: &Bound<'_, PyAny>,
        orders: &Bound<'_, PyAny>,
        tolerances: &Bound<'_, PyAny>,
        readings: Option<[Bound<'_, PyAny>; 3]>,
    ) -> PyResult<Self> {
        let differences = PyBuffer::<f64>::get(differences)?.to_vec(py)?;
        let orders = PyBuffer::<i8>::get(orders)?.to_vec(py)?;
        let tolerances = PyBuffer::<f64>::get(tolerances)?.to_vec(py)?;
        if orders.len() != differences.len() || tolerances.len() != differences.len() {
            return Err(PyValueError::new_err(format!(
                "{} differences, {} orders and {} tolerances: the three numbers must be equal",
                differences.len(),
                orders.len(),
                tolerances.len()
            )));
        }
        let readings = match readings {
            None => Vec::new(),
            Some(readings) => readings_of_blocks(py, differences.len(), &readings)?,
        };
        let inner = py.detach(|| {
            let mut sequence = verdict::BettingSequence::default();
            let blocks = differences.iter().zip(&orders).zip(&tolerances);
            for (index, ((&difference, &order), &tolerance)) in blocks.enumerate() {
                let known = readings.get(index).copied();
                let block_readings = known.unwrap_or(verdict::NO_READINGS);
                push(
                    &mut sequence,
                    block(difference, order, tolerance, block_readings)?,
                )?;
            }
            Ok::<_, PyErr>(sequence)
        })?;
        Ok(Self { inner })
    }

    #[pyo3(signature = (difference, order, tolerance, readings = None))]
    fn push(
        &mut self,
        difference: f64,
        order: i8,
        tolerance: f64,
        readings: Option<BlockReadings>,
    ) -> PyResult<()> {
        let readings = readings_of_block(readings)?;
        push(
            &mut self.inner,
            block(difference, order, tolerance, readings)?,
        )
    }

    #[pyo3(signature = (differences, orders, tolerances, readings = (None, None)))]
    fn push_pooled(
        &mut self,
        differences: (f64, f64),
        orders: (i8, i8),
        tolerances: (f64, f64),
        readings: (Option<BlockReadings>, Option<BlockReadings>),
    ) -> PyResult<()> {
        let baseline_readings = readings_of_block(readings.0)?;
        let baseline = block(differences.0, orders.0, tolerances.0, baseline_readings)?;
        let control_readings = readings_of_block(readings.1)?;
        let control = block(differences.1, orders.1, tolerances.1, control_readings)?;
        self.inner
            .push_pooled(baseline, control)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn running_interval(&self, py: Python<'_>, level: f64) -> PyResult<(f64, f64)> {
        let level = checked_level(level)?;
        Ok(py.detach(|| self.inner.running_interval(level)))
    }

    fn interval_at_stop(&self, py: Python<'_>, level: f64) -> PyResult<(f64, f64)> {
        let level = checked_level(level)?;
        Ok(py.detach(|| self.inner.interval_at_stop(level)))
    }

    fn ln_e_value(&self) -> f64 {
        self.inner.ln_e_value()
    }

    fn ln_e_value_beyond(&self, margin: f64) -> PyResult<f64> {
        Ok(self.inner.ln_e_value_beyond(checked_margin(margin)?))
    }

    fn ln_e_value_above(&self, theta: f64) -> PyResult<f64> {
        if !theta.is_finite() {
            return Err(PyValueError::new_err(format!(
                "theta must be a finite number, not {theta}"
            )));
        }
        Ok(self.inner.ln_e_value_above(theta))
    }

    fn blocks_to_exclude(&self, theta: f64, level: f64) -> PyResult<Option<usize>> {
        Ok(self.inner.blocks_to_exclude(theta, checked_level(level)?))
    }

    fn centre(&self) -> Option<(f64, f64, f64)> {
        let centre = self.inner.centre()?;
        Some((centre.typical, centre.order_effect, centre.scale))
    }

    fn adjustment(&self) -> Option<(usize, usize, f64)> {
        let summary = self.inner.adjustment()?;
        Some((summary.covariate, summary.blocks, summary.spread_ratio))
    }

    fn unadjusted(&self, py: Python<'_>) -> Self {
        let inner = py.detach(|| self.inner.unadjusted());
        Self { inner }
    }

    fn slower_count(&self, py: Python<'_>, level: f64) -> PyResult<(usize, usize, f64, f64)> {
        let level = checked_level(level)?;
        let count = py.detach(|| verdict::SlowerCount::of(self.inner.blocks(), level));
        Ok((count.slower, count.decided, count.low, count.high))
    }

    fn blocks_to_go_running(
        &self,
        py: Python<'_>,
        level: f64,
        margin: f64,
        max_blocks: usize,
        continuations: usize,
        seed: u64,
    ) -> PyResult<Option<usize>> {
        let memory = verdict::Memory::Running;
        let forecast = forecast(memory, (level, margin), max_blocks, continuations, seed)?;
        Ok(py.detach(|| forecast.blocks_to_go(&self.inner)))
    }

    fn blocks_to_go_at_stop(
        &self,
        py: Python<'_>,
        level: f64,
        margin: f64,
        max_blocks: usize,
        continuations: usize,
        seed: u64,
    ) -> PyResult<Option<usize>> {
        let memory = verdict::Memory::AtStop;
        let forecast = forecast(memory, (level, margin), max_blocks, continuations, seed)?;
        Ok(py.detach(|| forecast.blocks_to_go(&self.inner)))
    }

    fn blocks_to_exclude_margin(
        &self,
        py: Python<'_>,
        level: f64,
        margin: f64,
        max_blocks: usize,
        continuations: usize,
        seed: u64,
    ) -> PyResult<Option<usize>> {
        let memory = verdict::Memory::Running;
        let forecast = forecast(memory, (level, margin), max_blocks, continuations, seed)?;
        Ok(py.detach(|| forecast.blocks_to_exclude_margin(&self.inner)))
    }
}

fn forecast(
    memory: verdict::Memory,
    (level, margin): (f64, f64),
    max_blocks: usize,
    continuations: usize,
    seed: u64,
) -> PyResult<verdict::Forecast> {
    Ok(verdict::Forecast {
        level: checked_level(level)?,
        margin: checked_margin(margin)?,
        memory,
        max_blocks,
        continuations,
        seed,
    })
}

fn push(sequence: &mut verdict::BettingSequence, block: verdict::Block) -> PyResult<()> {
    sequence
        .push(block)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Differences (candidate minus baseline) and sums of a block's covariates, and the sum of its two
/// log costs.
type BlockReadings = (Vec<f64>, Vec<f64>, f64);

fn readings_of_block(readings: Option<BlockReadings>) -> PyResult<verdict::Readings> {
    match readings {
        None => Ok(verdict::NO_READINGS),
        Some((differences, sums, cost_sum)) => Ok(verdict::Readings {
            differences: per_covariate(&differences)?,
            sums: per_covariate(&sums)?,
            cost_sum,
        }),
    }
}

/// Converts the readings of n blocks: two arrays of shape (n, covariates), and one of shape (n,).
fn readings_of_blocks(
    py: Python<'_>,
    blocks: usize,
    readings: &[Bound<'_, PyAny>; 3],
) -> PyResult<Vec<verdict::Readings>> {
    let [differences, sums, cost_sums] = readings.each_ref();
    let differences = PyBuffer::<f64>::get(differences)?.to_vec(py)?;
    let sums = PyBuffer::<f64>::get(sums)?.to_vec(py)?;
    let cost_sums = PyBuffer::<f64>::get(cost_sums)?.to_vec(py)?;
    let covariates = differences.len().checked_div(blocks).unwrap_or(0);
    if cost_sums.len() != blocks
        || differences.len() != sums.len()
        || differences.len() != blocks * covariates
    {
        return Err(PyValueError::new_err(format!(
            "{} differences and {} sums for {blocks} blocks: every block needs all covariates",
            differences.len(),
            sums.len(),
        )));
    }
    (0..blocks)
        .map(|block| {
            let row = block * covariates..(block + 1) * covariates;
            Ok(verdict::Readings {
                differences: per_covariate(&differences[row.clone()])?,
                sums: per_covariate(&sums[row])?,
                cost_sum: cost_sums[block],
            })
        })
        .collect()
}

/// Returns one value for each possible covariate: the given values, then NaN.
fn per_covariate(values: &[f64]) -> PyResult<verdict::PerCovariate> {
    let mut padded = verdict::NO_READINGS.differences;
    if values.len() > padded.len() {
        return Err(PyValueError::new_err(format!(
            "{} covariates: at most {} can be adjusted for",
            values.len(),
            padded.len()
        )));
    }
    padded[..values.len()].copy_from_slice(values);
    Ok(padded)
}

fn block(
    difference: f64,
    order: i8,
    tolerance: f64,
    readings: verdict::Readings,
) -> PyResult<verdict::Block> {
    let order = match order {
        1 => verdict::Order::BaselineFirst,
        -1 => verdict::Order::CandidateFirst,
        other => {
            return Err(PyValueError::new_err(format!(
                "an order must be 1 (baseline first) or -1 (candidate first), not {other}"
            )));
        }
    };
    Ok(verdict::Block {
        difference,
        order,
        tolerance,
        readings,
    })
}

/// Returns the log ratios that several campaigns together do not exclude, as (low, high).
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "a list is extracted as a vector"
)]
pub fn common_interval(
    py: Python<'_>,
    campaigns: Vec<PyRef<'_, BettingSequence>>,
    level: f64,
) -> PyResult<(f64, f64)> {
    let level = checked_level(level)?;
    let campaigns: Vec<&verdict::BettingSequence> =
        campaigns.iter().map(|campaign| &campaign.inner).collect();
    Ok(py.detach(|| verdict::common_interval(&campaigns, level)))
}

/// Returns the smallest effect that each simulated campaign detects, in increasing order.
#[pyfunction]
#[pyo3(signature = (differences, max_effect, *, blocks, level, campaigns, seed))]
pub fn smallest_effects(
    py: Python<'_>,
    differences: &Bound<'_, PyAny>,
    max_effect: f64,
    blocks: usize,
    level: f64,
    campaigns: usize,
    seed: u64,
) -> PyResult<Vec<f64>> {
    let differences = PyBuffer::<f64>::get(differences)?.to_vec(py)?;
    if differences.is_empty() {
        return Err(PyValueError::new_err("the array of differences is empty"));
    }
    let sensitivity = verdict::Sensitivity {
        blocks,
        level: checked_level(level)?,
        campaigns,
        seed,
    };
    Ok(py.detach(|| sensitivity.smallest_effects(&differences, max_effect)))
}

fn checked_level(level: f64) -> PyResult<f64> {
    if level > 0.0 && level < 1.0 {
        return Ok(level);
    }
    Err(PyValueError::new_err(format!(
        "a level must be between 0 and 1, not {level}"
    )))
}

fn checked_margin(margin: f64) -> PyResult<f64> {
    if margin >= 0.0 && margin.is_finite() {
        return Ok(margin);
    }
    Err(PyValueError::new_err(format!(
        "the smallest difference that matters must be a finite number of at least 0, not {margin}"
    )))
}

/// The blocks of one intervention, and the bets against each fraction of the gap.
#[pyclass(module = "equipoise._native")]
pub struct FractionSequence {
    inner: verdict::FractionSequence,
}

#[pymethods]
impl FractionSequence {
    #[new]
    fn new(level: f64) -> PyResult<Self> {
        let inner = verdict::FractionSequence::new(checked_level(level)?);
        Ok(Self { inner })
    }

    fn push(&mut self, original_gap: f64, changed_gap: f64) {
        self.inner.push(original_gap, changed_gap);
    }

    fn estimate(&self) -> Option<f64> {
        self.inner.estimate()
    }

    fn rounded_set(&self, py: Python<'_>) -> Vec<FractionInterval> {
        py.detach(|| self.inner.rounded_set())
    }

    fn exact_set(&self, py: Python<'_>) -> Vec<FractionInterval> {
        py.detach(|| self.inner.exact_set())
    }

    fn fits(&self, fraction: f64) -> bool {
        self.inner.fits(fraction)
    }
}
