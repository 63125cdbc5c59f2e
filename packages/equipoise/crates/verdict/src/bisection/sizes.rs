//! The step and the noise of a search, learnt from past blocks.

use crate::order_statistics::{median, scale};

/// Least step that is believed in, in scales over the root of the number of blocks. With a step
/// below 0 a bet would fall in the difference and be fair no more.
const LEAST_STEP: f64 = 0.25;
/// Least scale, in log units.
const LEAST_SCALE: f64 = 1e-9;
/// Blocks before a slot effect is looked for, and how many scales over the root of n it exceeds
/// (as in `past`).
const BLOCKS_FOR_A_SLOT: usize = 6;
const SLOT_THRESHOLD: f64 = 2.5;
/// The size of the step is learnt from pairs that contain it with at least this chance.
const SURE: f64 = 0.9;

/// One block of a pair of commits, as sizes are learnt from it.
#[derive(Clone, Copy, Debug)]
pub struct PastBlock {
    pub before: usize,
    pub after: usize,
    /// In the direction of the gap; finite.
    pub difference: f64,
    /// 1 or −1: the sign with which an extra cost of the second place enters the difference.
    pub order: f64,
}

/// Knowledge before a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The step, in log units and in the direction of the gap; above 0.
    pub step: f64,
    /// The standard deviation of a block's difference; above 0.
    pub scale: f64,
    /// Extra cost of a trial in the second place of its block.
    pub slot: f64,
}

impl Sizes {
    /// Sizes before anything finite was seen.
    pub const UNKNOWN: Self = Self {
        step: 1.0,
        scale: 1.0,
        slot: 0.0,
    };

    /// Sizes after these blocks. `chance` is the present chance that a pair contains the step.
    pub fn learn(
        self,
        past: &[PastBlock],
        blocks: usize,
        chance: impl Fn(&PastBlock) -> f64,
    ) -> Self {
        let chances: Vec<f64> = past.iter().map(chance).collect();
        let known = || past.iter().zip(&chances);
        let mut scratch: Vec<f64> = known()
            .filter(|(_, chance)| **chance > SURE)
            .map(|(block, _)| block.difference - block.order * self.slot)
            .collect();
        let step = median(&mut scratch).unwrap_or(self.step);
        let rests: Vec<f64> = known()
            .map(|(block, chance)| block.difference - if *chance > 0.5 { step } else { 0.0 })
            .collect();
        let slot = slot(past, &rests);
        let without_slot: Vec<f64> = past
            .iter()
            .zip(&rests)
            .map(|(block, rest)| rest - block.order * slot)
            .collect();
        let spread = scale(&without_slot, 0.0, &mut scratch);
        let scale = if past.is_empty() { self.scale } else { spread }.max(LEAST_SCALE);
        Self {
            step: step.max(LEAST_STEP * scale / (blocks as f64).sqrt()),
            scale,
            slot,
        }
    }
}

/// Half the difference between the medians of the two orders; 0 where it is lost in noise.
fn slot(past: &[PastBlock], rests: &[f64]) -> f64 {
    if past.len() < BLOCKS_FOR_A_SLOT {
        return 0.0;
    }
    let median_of = |order: f64| {
        let paired = past.iter().zip(rests);
        let mut rests: Vec<f64> = paired
            .filter(|(block, _)| block.order * order > 0.0)
            .map(|(_, rest)| *rest)
            .collect();
        median(&mut rests)
    };
    let (Some(second), Some(first)) = (median_of(1.0), median_of(-1.0)) else {
        return 0.0;
    };
    let slot = 0.5 * (second - first);
    let without: Vec<f64> = past
        .iter()
        .zip(rests)
        .map(|(block, rest)| rest - block.order * slot)
        .collect();
    let noise = scale(&without, 0.5 * (second + first), &mut Vec::new());
    let threshold = SLOT_THRESHOLD * noise / (past.len() as f64).sqrt();
    if slot.abs() > threshold { slot } else { 0.0 }
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
    fn the_step_comes_from_pairs_that_surely_hold_it() {
        let mut blocks = past(&[0.02, 0.03, 0.04, 0.001, -0.001, 0.0]);
        for block in &mut blocks[3..] {
            block.after = 2;
        }
        let chance = |block: &PastBlock| if block.after == 1 { 0.95 } else { 0.1 };
        let sizes = Sizes::UNKNOWN.learn(&blocks, 6, chance);
        assert!((sizes.step - 0.03).abs() < 1e-12);
        // Rests: 0.01, 0, 0.01, 0.001, 0.001, 0.
        assert!((sizes.scale - 1.4826 * 0.001).abs() < 1e-12);
    }

    #[test]
    fn a_step_below_0_becomes_a_small_one_above_it() {
        let sizes = Sizes::UNKNOWN.learn(&past(&[-0.02, -0.01, -0.03, -0.02]), 4, |_| 1.0);
        assert!(sizes.step > 0.0 && sizes.scale > 0.0);
        assert!((sizes.step - 0.25 * sizes.scale / 2.0).abs() < 1e-15);
    }

    #[test]
    fn differences_without_spread_have_a_least_scale() {
        let sizes = Sizes::UNKNOWN.learn(&past(&[0.1; 8]), 8, |_| 1.0);
        assert!((sizes.step - 0.1).abs() < 1e-12 && sizes.scale >= LEAST_SCALE);
    }

    #[test]
    fn a_slot_effect_is_found_and_taken_out() {
        let differences = [0.081, -0.019, 0.079, -0.021, 0.080, -0.020, 0.082, -0.018];
        let first = Sizes::UNKNOWN.learn(&past(&differences), 8, |_| 1.0);
        let sizes = first.learn(&past(&differences), 8, |_| 1.0);
        assert!((sizes.slot - 0.05).abs() < 3e-3, "{sizes:?}");
        assert!(
            sizes.scale < 3e-3 && (sizes.step - 0.03).abs() < 3e-3,
            "{sizes:?}"
        );
    }

    #[test]
    fn nothing_finite_leaves_everything_as_it_was() {
        assert_eq!(Sizes::UNKNOWN.learn(&[], 5, |_| 1.0), Sizes::UNKNOWN);
    }
}
