//! The knowledge of a bettor: the scale and the slot effect, learnt from past blocks only.

use crate::adjustment::{Adjustment, Covariates};
use crate::block::Block;
use crate::order_statistics::{median, scale};

/// Up to this number of blocks all values are learnt again at every block; afterwards only when the
/// number of blocks has grown by 1/64, which keeps long campaigns linear. This depends only on the
/// number of past blocks, so the bets stay functions of the past.
const LEARN_AT_EVERY_BLOCK: usize = 256;
const GROWTH: usize = 64;

/// Blocks before the spread around a median is trusted.
pub(crate) const BLOCKS_FOR_A_SPREAD: usize = 3;
/// Blocks before a slot effect is looked for.
const BLOCKS_FOR_A_SLOT: usize = 6;
/// A slot effect is corrected when it exceeds 2.5 scales over the root of n.
const SLOT_THRESHOLD: f64 = 2.5;
/// Deviations beyond 1.5 MAD scales count as 1.5 (Huber 1964).
const HUBERISED_AT: f64 = 1.5;
/// E min(Z², 1.5²) of a standard normal Z: scales the Huberised variance to that of a normal.
const HUBERISED_VARIANCE: f64 = 0.778_465_216_174_47;

/// The learnt values; a `scale` of 0 means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learnt {
    /// Robust standard deviation of the differences, after the slot effect.
    pub scale: f64,
    /// How much more, in log units, a trial takes in the second place of its block.
    pub slot: f64,
    /// The part of the differences that a covariate explains; scale and slot are of the rest.
    pub adjustment: Option<Adjustment>,
}

impl Learnt {
    /// The part of a block's difference that neither the covariate nor the slot explains.
    pub(crate) fn rest_of(&self, block: &Block) -> f64 {
        block.difference - self.explained(block) - block.order.sign() * self.slot
    }

    /// The part of a block's difference that the covariate explains; 0 without one.
    pub(crate) fn explained(&self, block: &Block) -> f64 {
        self.adjustment
            .map_or(0.0, |adjustment| adjustment.explained(&block.readings))
    }
}

/// The blocks so far.
#[derive(Clone, Debug, Default)]
pub struct Past {
    differences: Vec<f64>,
    signs: Vec<f64>,
    covariates: Covariates,
    adjusted: Vec<f64>,
    learnt: Learnt,
    learnt_at: usize,
    scratch: Vec<f64>,
    residuals: Vec<f64>,
}

impl Past {
    /// The values known before the next block.
    pub fn learnt(&mut self) -> Learnt {
        let count = self.differences.len();
        let due = if count <= LEARN_AT_EVERY_BLOCK {
            count != self.learnt_at
        } else {
            count >= self.learnt_at + self.learnt_at / GROWTH
        };
        if due {
            self.learnt = self.learn();
            self.learnt_at = count;
        }
        self.learnt
    }

    /// The values known from all blocks, including the last: for estimates, never for bets.
    pub fn in_hindsight(&self) -> Learnt {
        self.clone().learn()
    }

    /// The same past with the part of the differences that no covariate explains.
    pub(crate) fn without_covariates(&self) -> Self {
        let mut past = self.clone();
        past.learn();
        past.differences.clone_from(&past.adjusted);
        past.covariates = Covariates::default();
        past
    }

    /// Adds a block; a block in which both trials timed out changes nothing.
    pub fn add(&mut self, block: &Block) {
        if !block.difference.is_nan() {
            self.differences.push(block.difference);
            self.signs.push(block.order.sign());
            self.covariates.add(&block.readings);
        }
    }

    fn learn(&mut self) -> Learnt {
        let adjustment = self.covariates.learn(&self.differences, &self.signs);
        self.adjusted.clear();
        self.adjusted.extend_from_slice(&self.differences);
        if let Some(adjustment) = adjustment {
            for (difference, row) in self.adjusted.iter_mut().zip(self.covariates.rows()) {
                *difference -= adjustment.explained(row);
            }
        }
        let corrected = if self.adjusted.len() >= BLOCKS_FOR_A_SLOT {
            self.corrected()
        } else {
            None
        };
        let (scale, slot) = corrected.unwrap_or_else(|| {
            let scale = learnt_scale(&self.adjusted, &mut self.scratch);
            (scale, 0.0)
        });
        Learnt {
            scale,
            slot,
            adjustment,
        }
    }

    /// The scale and the slot effect, if there is one beyond its noise.
    ///
    /// The slot effect is half the difference between the medians of the two orders. (The median
    /// of s·(d − median d) is drawn to 0 when the slot effect exceeds the noise, since the median
    /// of all differences then falls into the half of one order.)
    fn corrected(&mut self) -> Option<(f64, f64)> {
        let second = self.median_of(1.0)?;
        let first = self.median_of(-1.0)?;
        let slot = Some(0.5 * (second - first)).filter(|slot| slot.is_finite())?;
        self.residuals.clear();
        let paired = self.adjusted.iter().zip(&self.signs);
        self.residuals
            .extend(paired.map(|(difference, sign)| difference - sign * slot));
        let middle = 0.5 * (second + first);
        let scale = spread(&self.residuals, middle, &mut self.scratch);
        let noise = SLOT_THRESHOLD * scale / (self.differences.len() as f64).sqrt();
        (slot.abs() > noise).then_some((scale, slot))
    }

    /// The median of the differences of one order.
    fn median_of(&mut self, order: f64) -> Option<f64> {
        let paired = self.adjusted.iter().zip(&self.signs);
        self.scratch.clear();
        self.scratch.extend(
            paired
                .filter(|(_, sign)| **sign * order > 0.0)
                .map(|(difference, _)| *difference),
        );
        median(&mut self.scratch)
    }
}

/// The scale of differences; 0 if unknown.
///
/// The root mean square after one and two blocks; then the standard deviation of differences
/// Huberised at 1.5 MAD scales, widened by (1 + 1/n) for the uncertainty of few blocks.
pub fn learnt_scale(differences: &[f64], scratch: &mut Vec<f64>) -> f64 {
    if differences.len() < BLOCKS_FOR_A_SPREAD {
        return root_mean_square(differences);
    }
    scratch.clear();
    scratch.extend_from_slice(differences);
    let middle = median(scratch).filter(|middle| middle.is_finite());
    middle.map_or(0.0, |middle| spread(differences, middle, scratch))
}

/// The scale of differences around their middle.
fn spread(differences: &[f64], middle: f64, scratch: &mut Vec<f64>) -> f64 {
    let deviation = scale(differences, middle, scratch);
    if deviation == 0.0 {
        return deviation;
    }
    let limit = HUBERISED_AT * deviation;
    let squares = differences
        .iter()
        .map(|difference| (difference - middle).abs().min(limit).powi(2));
    let count = differences.len() as f64;
    let variance = squares.sum::<f64>() / (count * HUBERISED_VARIANCE);
    variance.sqrt() * (1.0 + count.recip())
}

/// 0 if there are no differences, or an infinite one.
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
    use crate::adjustment::NO_READINGS;
    use crate::block::Order;

    fn past(differences: &[f64], orders: &[Order]) -> Past {
        let mut past = Past::default();
        for (&difference, &order) in differences.iter().zip(orders) {
            past.add(&Block {
                difference,
                order,
                tolerance: 0.0,
                readings: NO_READINGS,
            });
        }
        past
    }

    #[test]
    fn a_slot_effect_is_found_and_taken_out_of_the_scale() {
        use Order::{BaselineFirst as A, CandidateFirst as B};
        let differences = [0.051, -0.049, 0.049, -0.051, 0.050, -0.050, 0.052, -0.048];
        let learnt = past(&differences, &[A, B, A, B, A, B, A, B]).learnt();
        assert!((learnt.slot - 0.05).abs() < 2e-3, "{learnt:?}");
        assert!(learnt.scale < 3e-3, "{learnt:?}");
    }

    #[test]
    fn noise_is_no_slot_effect() {
        use Order::{BaselineFirst as A, CandidateFirst as B};
        let differences = [0.03, 0.01, -0.02, 0.02, -0.03, -0.01, 0.04, -0.04];
        let learnt = past(&differences, &[A, B, A, B, A, B, A, B]).learnt();
        assert!(learnt.slot.abs() < f64::MIN_POSITIVE, "{learnt:?}");
    }

    #[test]
    fn a_scale_is_known_after_one_block_and_bounds_extremes() {
        let scale = |differences: &[f64]| {
            let orders = vec![Order::BaselineFirst; differences.len()];
            past(differences, &orders).learnt().scale
        };
        assert!(scale(&[]).abs() < f64::MIN_POSITIVE);
        assert!((scale(&[-0.1]) - 0.1).abs() < 1e-12);
        assert!((scale(&[0.3, 0.4]) - (0.125_f64).sqrt()).abs() < 1e-12);
        assert!(scale(&[0.3, f64::INFINITY]).abs() < f64::MIN_POSITIVE);
        // Median 0.2, MAD scale 0.14826: the extreme counts as 0.22239.
        let variance: f64 = (0.01 + 0.222_39_f64.powi(2)) / (3.0 * HUBERISED_VARIANCE);
        assert!((scale(&[0.1, 0.2, 9.0]) - variance.sqrt() * 4.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_majority_of_timeouts_leaves_only_signs() {
        let infinity = f64::INFINITY;
        let mut past = past(
            &[infinity, infinity, 0.1, infinity],
            &[Order::BaselineFirst; 4],
        );
        assert_eq!(past.learnt(), Learnt::default());
    }
}
