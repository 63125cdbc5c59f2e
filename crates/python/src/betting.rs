//! The betting engine's face.

use equipoise_verdict as verdict;
use equipoise_verdict::fraction::Piece;
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
    fn new(
        py: Python<'_>,
        differences: &Bound<'_, PyAny>,
        orders: &Bound<'_, PyAny>,
        tolerances: &Bound<'_, PyAny>,
        engine: u32,
    ) -> PyResult<Self> {
        let engine = engine_of_version(engine)?;
        let differences = PyBuffer::<f64>::get(differences)?.to_vec(py)?;
        let orders = PyBuffer::<i8>::get(orders)?.to_vec(py)?;
        let tolerances = PyBuffer::<f64>::get(tolerances)?.to_vec(py)?;
        if orders.len() != differences.len() || tolerances.len() != differences.len() {
            return Err(PyValueError::new_err(format!(
                "{} differences, {} orders and {} tolerances: there must be as many of each",
                differences.len(),
                orders.len(),
                tolerances.len()
            )));
        }
        let inner = py.detach(|| {
            let mut sequence = verdict::BettingSequence::new(engine);
            let blocks = differences.iter().zip(&orders).zip(&tolerances);
            for ((&difference, &order), &tolerance) in blocks {
                push(&mut sequence, block(difference, order, tolerance, &[])?)?;
            }
            Ok::<_, PyErr>(sequence)
        })?;
        Ok(Self { inner })
    }

    #[pyo3(signature = (difference, order, tolerance, covariates = Vec::new()))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "PyO3 hands over a list as a vector"
    )]
    fn push(
        &mut self,
        difference: f64,
        order: i8,
        tolerance: f64,
        covariates: Vec<f64>,
    ) -> PyResult<()> {
        push(
            &mut self.inner,
            block(difference, order, tolerance, &covariates)?,
        )
    }

    #[pyo3(signature = (differences, orders, tolerances, covariates = (Vec::new(), Vec::new())))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "PyO3 hands over a list as a vector"
    )]
    fn push_pooled(
        &mut self,
        differences: (f64, f64),
        orders: (i8, i8),
        tolerances: (f64, f64),
        covariates: (Vec<f64>, Vec<f64>),
    ) -> PyResult<()> {
        let first = block(differences.0, orders.0, tolerances.0, &covariates.0)?;
        let twin = block(differences.1, orders.1, tolerances.1, &covariates.1)?;
        self.inner
            .push_pooled(first, twin)
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

    fn blocks_to_exclude(&self, theta: f64, level: f64) -> PyResult<Option<usize>> {
        Ok(self.inner.blocks_to_exclude(theta, checked_level(level)?))
    }

    fn centre(&self) -> Option<(f64, f64, f64)> {
        let centre = self.inner.centre()?;
        Some((centre.typical, centre.slot, centre.scale))
    }

    fn adjustment(&self) -> Option<(usize, usize, f64)> {
        let summary = self.inner.adjustment()?;
        Some((summary.covariate, summary.blocks, summary.spread_ratio))
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
        cap: usize,
        continuations: usize,
        seed: u64,
    ) -> PyResult<Option<usize>> {
        let memory = verdict::Memory::Running;
        self.blocks_to_go(py, memory, (level, margin), cap, continuations, seed)
    }

    fn blocks_to_go_at_stop(
        &self,
        py: Python<'_>,
        level: f64,
        margin: f64,
        cap: usize,
        continuations: usize,
        seed: u64,
    ) -> PyResult<Option<usize>> {
        let memory = verdict::Memory::AtStop;
        self.blocks_to_go(py, memory, (level, margin), cap, continuations, seed)
    }
}

impl BettingSequence {
    fn blocks_to_go(
        &self,
        py: Python<'_>,
        memory: verdict::Memory,
        (level, margin): (f64, f64),
        cap: usize,
        continuations: usize,
        seed: u64,
    ) -> PyResult<Option<usize>> {
        let forecast = verdict::Forecast {
            level: checked_level(level)?,
            margin: checked_margin(margin)?,
            memory,
            cap,
            continuations,
            seed,
        };
        Ok(py.detach(|| forecast.blocks_to_go(&self.inner)))
    }
}

fn push(sequence: &mut verdict::BettingSequence, block: verdict::Block) -> PyResult<()> {
    sequence
        .push(block)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

fn block(
    difference: f64,
    order: i8,
    tolerance: f64,
    covariates: &[f64],
) -> PyResult<verdict::Block> {
    let mut known = verdict::NO_COVARIATES;
    if covariates.len() > known.len() {
        return Err(PyValueError::new_err(format!(
            "{} covariates: at most {} are adjusted for",
            covariates.len(),
            known.len()
        )));
    }
    known[..covariates.len()].copy_from_slice(covariates);
    let order = match order {
        1 => verdict::Order::BaselineFirst,
        -1 => verdict::Order::CandidateFirst,
        other => {
            return Err(PyValueError::new_err(format!(
                "an order is 1 (baseline first) or -1 (candidate first), not {other}"
            )));
        }
    };
    Ok(verdict::Block {
        difference,
        order,
        tolerance,
        covariates: known,
    })
}

/// How a verdict follows from the intervals, in one version of the engine.
#[pyclass(module = "equipoise._native", frozen, get_all)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "rules that are independent of each other"
)]
pub struct VerdictRules {
    equivalence_levels: f64,
    equivalence_blocks: usize,
    means_veto_equivalence: bool,
    mixed_without_extreme_block: bool,
    resolution_from_past: bool,
    estimate_within_interval: bool,
}

/// The rules of a version of the engine.
#[pyfunction]
pub fn verdict_rules(engine: u32) -> PyResult<VerdictRules> {
    let rules = engine_of_version(engine)?.rules;
    Ok(VerdictRules {
        equivalence_levels: rules.equivalence_levels,
        equivalence_blocks: rules.equivalence_blocks,
        means_veto_equivalence: rules.means_veto_equivalence,
        mixed_without_extreme_block: rules.mixed_without_extreme_block,
        resolution_from_past: rules.resolution_from_past,
        estimate_within_interval: rules.estimate_within_interval,
    })
}

fn engine_of_version(version: u32) -> PyResult<&'static verdict::Engine> {
    verdict::Engine::of_version(version)
        .ok_or_else(|| PyValueError::new_err(format!("there is no engine {version}")))
}

fn checked_level(level: f64) -> PyResult<f64> {
    if level > 0.0 && level < 1.0 {
        return Ok(level);
    }
    Err(PyValueError::new_err(format!(
        "a level lies between 0 and 1, which {level} does not"
    )))
}

fn checked_margin(margin: f64) -> PyResult<f64> {
    if margin >= 0.0 && margin.is_finite() {
        return Ok(margin);
    }
    Err(PyValueError::new_err(format!(
        "the smallest difference that matters is 0 or more, not {margin}"
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
    fn new(level: f64, engine: u32) -> PyResult<Self> {
        let engine = engine_of_version(engine)?;
        let inner = verdict::FractionSequence::new(engine, checked_level(level)?);
        Ok(Self { inner })
    }

    fn push(&mut self, without: f64, with_it: f64) {
        self.inner.push(without, with_it);
    }

    fn estimate(&self) -> Option<f64> {
        self.inner.estimate()
    }

    fn rounded_set(&self, py: Python<'_>) -> Vec<Piece> {
        py.detach(|| self.inner.rounded_set())
    }

    fn exact_set(&self, py: Python<'_>) -> Vec<Piece> {
        py.detach(|| self.inner.exact_set())
    }

    fn fits(&self, fraction: f64) -> bool {
        self.inner.fits(fraction)
    }
}
