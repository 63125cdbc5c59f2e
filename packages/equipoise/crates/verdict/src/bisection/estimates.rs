//! The step, the noise and the order effect, estimated from past blocks.

use crate::order_statistics::{mad_scale, median};

/// Smallest estimate of the step after n blocks, in units of scale/√n. A bet needs a step above 0.
const MIN_STEP_SCALES: f64 = 0.25;
/// Smallest estimate of the scale, in log units.
const MIN_SCALE: f64 = 1e-9;
/// Smallest number of blocks from which an order effect is estimated (as in `past`).
const MIN_BLOCKS_FOR_ORDER_EFFECT: usize = 6;
/// The order effect counts as 0 up to this number of scales over √n (as in `past`).
const MIN_ORDER_EFFECT_SCALES: f64 = 2.5;
/// The step is estimated from pairs that contain the culprit with more than this chance.
const MIN_CHANCE_OF_STEP: f64 = 0.9;
/// With more than this chance that a pair contains the culprit, its blocks contain the step.
const LIKELY: f64 = 0.5;

/// A past block of a pair of commits.
#[derive(Clone, Copy, Debug)]
pub struct PastBlock {
    /// Index of the earlier commit.
    pub before: usize,
    /// Index of the later commit.
    pub after: usize,
    /// Finite difference of the log costs, positive in the direction of the gap.
    pub difference: f64,
    /// 1 or −1: the order effect is part of the difference with this sign.
    pub order: f64,
}

/// The estimates for the bet on the next block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimates {
    /// The change of the log cost by the culprit, positive in the direction of the gap.
    pub step: f64,
    /// The standard deviation of a block's difference; above 0.
    pub scale: f64,
    /// The order effect: how much more the second trial of a block costs, in log units.
    pub order_effect: f64,
}

impl Estimates {
    /// The estimates before the first finite difference.
    pub const UNKNOWN: Self = Self {
        step: 1.0,
        scale: 1.0,
        order_effect: 0.0,
    };

    /// The estimates after more blocks. `chance` is the chance that a block's pair has the culprit.
    pub fn updated(
        self,
        past: &[PastBlock],
        block_count: usize,
        chance: impl Fn(&PastBlock) -> f64,
    ) -> Self {
        let chances: Vec<f64> = past.iter().map(chance).collect();
        let blocks_and_chances = || past.iter().zip(&chances);
        let mut scratch: Vec<f64> = blocks_and_chances()
            .filter(|(_, chance)| **chance > MIN_CHANCE_OF_STEP)
            .map(|(block, _)| block.difference - block.order * self.order_effect)
            .collect();
        let step = median(&mut scratch).unwrap_or(self.step);
        let residuals: Vec<f64> = blocks_and_chances()
            .map(|(block, chance)| block.difference - if *chance > LIKELY { step } else { 0.0 })
            .collect();
        let order_effect = estimate_order_effect(past, &residuals);
        let rest: Vec<f64> = past
            .iter()
            .zip(&residuals)
            .map(|(block, residual)| residual - block.order * order_effect)
            .collect();
        let spread = mad_scale(&rest, 0.0, &mut scratch);
        let scale = if past.is_empty() { self.scale } else { spread }.max(MIN_SCALE);
        Self {
            step: step.max(MIN_STEP_SCALES * scale / (block_count as f64).sqrt()),
            scale,
            order_effect,
        }
    }
}

/// Half the difference between the medians of the two orders; 0 if it is within the noise.
fn estimate_order_effect(past: &[PastBlock], residuals: &[f64]) -> f64 {
    if past.len() < MIN_BLOCKS_FOR_ORDER_EFFECT {
        return 0.0;
    }
    let median_of = |order: f64| {
        let paired = past.iter().zip(residuals);
        let mut residuals: Vec<f64> = paired
            .filter(|(block, _)| block.order * order > 0.0)
            .map(|(_, residual)| *residual)
            .collect();
        median(&mut residuals)
    };
    let (Some(positive), Some(negative)) = (median_of(1.0), median_of(-1.0)) else {
        return 0.0;
    };
    let order_effect = 0.5 * (positive - negative);
    let rest: Vec<f64> = past
        .iter()
        .zip(residuals)
        .map(|(block, residual)| residual - block.order * order_effect)
        .collect();
    let noise = mad_scale(&rest, 0.5 * (positive + negative), &mut Vec::new());
    let threshold = MIN_ORDER_EFFECT_SCALES * noise / (past.len() as f64).sqrt();
    if order_effect.abs() > threshold {
        order_effect
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(differences: &[f64]) -> Vec<PastBlock> {
        let orders = [1.0, -1.0].into_iter().cycle();
        differences
            .iter()
            .zip(orders)
            .map(|(&difference, order)| PastBlock {
                before: 0,
                after: 1,
                difference,
                order,
            })
            .collect()
    }

    #[test]
    fn the_step_is_estimated_from_pairs_that_probably_contain_it() {
        let mut blocks = past(&[0.02, 0.03, 0.04, 0.001, -0.001, 0.0]);
        for block in &mut blocks[3..] {
            block.after = 2;
        }
        let chance = |block: &PastBlock| if block.after == 1 { 0.95 } else { 0.1 };
        let found = Estimates::UNKNOWN.updated(&blocks, 6, chance);
        assert!((found.step - 0.03).abs() < 1e-12);
        // Absolute residuals: 0.01, 0, 0.01, 0.001, 0.001, 0.
        assert!((found.scale - 1.4826 * 0.001).abs() < 1e-12);
    }

    #[test]
    fn a_negative_step_becomes_a_small_positive_step() {
        let found = Estimates::UNKNOWN.updated(&past(&[-0.02, -0.01, -0.03, -0.02]), 4, |_| 1.0);
        assert!(found.step > 0.0 && found.scale > 0.0);
        assert!((found.step - 0.25 * found.scale / 2.0).abs() < 1e-15);
    }

    #[test]
    fn equal_differences_have_the_smallest_scale() {
        let found = Estimates::UNKNOWN.updated(&past(&[0.1; 8]), 8, |_| 1.0);
        assert!((found.step - 0.1).abs() < 1e-12 && found.scale >= MIN_SCALE);
    }

    #[test]
    fn the_step_and_the_scale_do_not_contain_the_order_effect() {
        let differences = [0.081, -0.019, 0.079, -0.021, 0.080, -0.020, 0.082, -0.018];
        let first = Estimates::UNKNOWN.updated(&past(&differences), 8, |_| 1.0);
        let found = first.updated(&past(&differences), 8, |_| 1.0);
        assert!((found.order_effect - 0.05).abs() < 3e-3, "{found:?}");
        assert!(
            found.scale < 3e-3 && (found.step - 0.03).abs() < 3e-3,
            "{found:?}"
        );
    }

    #[test]
    fn the_sizes_stay_the_same_without_finite_differences() {
        assert_eq!(
            Estimates::UNKNOWN.updated(&[], 5, |_| 1.0),
            Estimates::UNKNOWN
        );
    }
}
