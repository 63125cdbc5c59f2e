//! The estimates for the next bet, from past blocks only.
//!
//! The *scale* is the standard deviation of the differences, after they were clipped at 1.5 MAD
//! scales (Huber 1964). The *MAD scale* is 1.4826 times the median absolute deviation. The *order
//! effect* is how much more the second trial of a block takes.

use crate::adjustment::{Adjustment, Covariates};
use crate::block::Block;
use crate::order_statistics::{mad_scale, median};

/// When a new block updates the estimates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Updates {
    /// Number of blocks up to which each block updates the estimates.
    pub(crate) every_block_up_to: usize,
    /// Later, the estimates are updated when the number of blocks has grown by 1 over this number.
    /// So the time of all updates grows only linearly.
    pub(crate) growth_divisor: usize,
}

impl Default for Updates {
    fn default() -> Self {
        Self {
            every_block_up_to: 256,
            growth_divisor: 64,
        }
    }
}

/// Smallest number of blocks whose differences are clipped.
pub(crate) const MIN_BLOCKS_FOR_CLIPPED_SCALE: usize = 3;
/// Smallest number of blocks from which an order effect is estimated.
const MIN_BLOCKS_FOR_ORDER_EFFECT: usize = 6;
/// The order effect counts as 0, within the noise, up to this number of scales over √n.
const MIN_ORDER_EFFECT_SCALES: f64 = 2.5;
/// Number of MAD scales at which deviations from the centre are clipped.
const CLIP_MAD_SCALES: f64 = 1.5;
/// Variance of a standard normal variable that is clipped at ±1.5. The variance of the clipped
/// deviations is divided by this number.
const CLIPPED_NORMAL_VARIANCE: f64 = 0.778_465_216_174_47;

/// Estimates from past blocks. A `scale` of 0 means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimates {
    /// Scale of the differences without the order effect.
    pub scale: f64,
    /// Order effect, in log units.
    pub order_effect: f64,
    /// The covariate that explains a part of the differences, if any. `scale` and `order_effect` are
    /// estimated from the differences without that part.
    pub adjustment: Option<Adjustment>,
}

impl Estimates {
    /// The part of a block's difference that neither the covariate nor the order effect explains.
    pub(crate) fn residual(&self, block: &Block) -> f64 {
        block.difference - self.explained_part(block) - block.order.sign() * self.order_effect
    }

    /// The part of a block's difference that the covariate explains; 0 without one.
    pub(crate) fn explained_part(&self, block: &Block) -> f64 {
        self.adjustment
            .map_or(0.0, |adjustment| adjustment.explained_part(&block.readings))
    }
}

/// The past blocks, and the estimates from them.
#[derive(Clone, Debug, Default)]
pub struct Past {
    differences: Vec<f64>,
    signs: Vec<f64>,
    covariates: Covariates,
    /// The differences without the part that the covariate explains.
    adjusted: Vec<f64>,
    estimates: Estimates,
    updates: Updates,
    /// Number of blocks at the last update of the estimates.
    estimated_at: usize,
    scratch: Vec<f64>,
    residuals: Vec<f64>,
}

impl Past {
    /// The estimates for a bet on the next block.
    pub fn estimates(&mut self) -> Estimates {
        let count = self.differences.len();
        let is_due = if count <= self.updates.every_block_up_to {
            count != self.estimated_at
        } else {
            count >= self.estimated_at + self.estimated_at / self.updates.growth_divisor
        };
        if is_due {
            self.estimates = self.estimate();
            self.estimated_at = count;
        }
        self.estimates
    }

    /// The estimates from all blocks including the last: for results, never for bets.
    pub fn final_estimates(&self) -> Estimates {
        self.clone().estimate()
    }

    /// The same blocks, without the part of their differences that the covariate explains.
    pub(crate) fn without_covariates(&self) -> Self {
        let mut past = self.clone();
        past.estimate();
        past.differences.clone_from(&past.adjusted);
        past.covariates = Covariates::default();
        past
    }

    /// The same blocks, which update the estimates at other numbers of blocks.
    pub(crate) fn with_updates(self, updates: Updates) -> Self {
        Self { updates, ..self }
    }

    /// Adds a block, unless both of its trials timed out.
    pub fn add(&mut self, block: &Block) {
        if !block.difference.is_nan() {
            self.differences.push(block.difference);
            self.signs.push(block.order.sign());
            self.covariates.add(&block.readings);
        }
    }

    fn estimate(&mut self) -> Estimates {
        let adjustment = self.covariates.estimate(&self.differences, &self.signs);
        self.adjusted.clear();
        self.adjusted.extend_from_slice(&self.differences);
        if let Some(adjustment) = adjustment {
            for (difference, row) in self.adjusted.iter_mut().zip(self.covariates.rows()) {
                *difference -= adjustment.explained_part(row);
            }
        }
        let scale_and_order_effect = if self.adjusted.len() >= MIN_BLOCKS_FOR_ORDER_EFFECT {
            self.scale_and_order_effect()
        } else {
            None
        };
        let (scale, order_effect) = scale_and_order_effect.unwrap_or_else(|| {
            let scale = scale_of(&self.adjusted, &mut self.scratch);
            (scale, 0.0)
        });
        Estimates {
            scale,
            order_effect,
            adjustment,
        }
    }

    /// The scale and the order effect; `None` if the order effect is within the noise.
    ///
    /// The order effect is half the difference between the medians of the two orders
    /// (docs/decisions/statistics.md).
    fn scale_and_order_effect(&mut self) -> Option<(f64, f64)> {
        let candidate_second = self.median_of(1.0)?;
        let candidate_first = self.median_of(-1.0)?;
        let order_effect = Some(0.5 * (candidate_second - candidate_first));
        let order_effect = order_effect.filter(|order_effect| order_effect.is_finite())?;
        self.residuals.clear();
        let paired = self.adjusted.iter().zip(&self.signs);
        self.residuals
            .extend(paired.map(|(difference, sign)| difference - sign * order_effect));
        let middle = 0.5 * (candidate_second + candidate_first);
        let scale = clipped_scale(&self.residuals, middle, &mut self.scratch);
        let threshold = MIN_ORDER_EFFECT_SCALES * scale / (self.differences.len() as f64).sqrt();
        (order_effect.abs() > threshold).then_some((scale, order_effect))
    }

    /// The median of the differences of one order, by its sign.
    fn median_of(&mut self, order_sign: f64) -> Option<f64> {
        let paired = self.adjusted.iter().zip(&self.signs);
        self.scratch.clear();
        self.scratch.extend(
            paired
                .filter(|(_, sign)| **sign * order_sign > 0.0)
                .map(|(difference, _)| *difference),
        );
        median(&mut self.scratch)
    }
}

/// The scale of differences; 0 if unknown.
///
/// With one or two blocks, the scale is the root mean square, without clipping.
pub fn scale_of(differences: &[f64], scratch: &mut Vec<f64>) -> f64 {
    if differences.len() < MIN_BLOCKS_FOR_CLIPPED_SCALE {
        return root_mean_square(differences);
    }
    scratch.clear();
    scratch.extend_from_slice(differences);
    let middle = median(scratch).filter(|middle| middle.is_finite());
    middle.map_or(0.0, |middle| clipped_scale(differences, middle, scratch))
}

/// The scale of n differences, times 1 + 1/n: estimates from few blocks are uncertain.
fn clipped_scale(differences: &[f64], centre: f64, scratch: &mut Vec<f64>) -> f64 {
    let unclipped_scale = mad_scale(differences, centre, scratch);
    if unclipped_scale == 0.0 {
        return unclipped_scale;
    }
    let limit = CLIP_MAD_SCALES * unclipped_scale;
    let squares = differences
        .iter()
        .map(|difference| (difference - centre).abs().min(limit).powi(2));
    let count = differences.len() as f64;
    let variance = squares.sum::<f64>() / (count * CLIPPED_NORMAL_VARIANCE);
    variance.sqrt() * (1.0 + count.recip())
}

/// The root mean square; 0 without differences, or with an infinite difference.
fn root_mean_square(differences: &[f64]) -> f64 {
    let squares: f64 = differences
        .iter()
        .map(|difference| difference.powi(2))
        .sum();
    let root = (squares / differences.len() as f64).sqrt();
    if root.is_finite() { root } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Order;

    fn past(differences: &[f64], orders: &[Order]) -> Past {
        let mut past = Past::default();
        for (&difference, &order) in differences.iter().zip(orders) {
            past.add(&Block::new(difference, order, 0.0));
        }
        past
    }

    #[test]
    fn the_scale_does_not_contain_the_order_effect() {
        use Order::{BaselineFirst as A, CandidateFirst as B};
        let differences = [0.051, -0.049, 0.049, -0.051, 0.050, -0.050, 0.052, -0.048];
        let found = past(&differences, &[A, B, A, B, A, B, A, B]).estimates();
        assert!((found.order_effect - 0.05).abs() < 2e-3, "{found:?}");
        assert!(found.scale < 3e-3, "{found:?}");
    }

    #[test]
    fn noise_is_not_taken_for_an_order_effect() {
        use Order::{BaselineFirst as A, CandidateFirst as B};
        let differences = [0.03, 0.01, -0.02, 0.02, -0.03, -0.01, 0.04, -0.04];
        let found = past(&differences, &[A, B, A, B, A, B, A, B]).estimates();
        assert!(found.order_effect.abs() < f64::MIN_POSITIVE, "{found:?}");
    }

    #[test]
    fn the_scale_is_known_after_one_block_and_limits_extremes() {
        let scale = |differences: &[f64]| {
            let orders = vec![Order::BaselineFirst; differences.len()];
            past(differences, &orders).estimates().scale
        };
        assert!(scale(&[]).abs() < f64::MIN_POSITIVE);
        assert!((scale(&[-0.1]) - 0.1).abs() < 1e-12);
        assert!((scale(&[0.3, 0.4]) - (0.125_f64).sqrt()).abs() < 1e-12);
        assert!(scale(&[0.3, f64::INFINITY]).abs() < f64::MIN_POSITIVE);
        // Median 0.2, MAD scale 0.14826: the extreme counts as 0.22239.
        let variance: f64 = (0.01 + 0.222_39_f64.powi(2)) / (3.0 * CLIPPED_NORMAL_VARIANCE);
        assert!((scale(&[0.1, 0.2, 9.0]) - variance.sqrt() * 4.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_scale_is_unknown_if_most_trials_timed_out() {
        let infinity = f64::INFINITY;
        let mut past = past(
            &[infinity, infinity, 0.1, infinity],
            &[Order::BaselineFirst; 4],
        );
        assert_eq!(past.estimates(), Estimates::default());
    }
}
