//! What a bettor may know: the scale and the slot effect, learnt from past blocks only.

use crate::block::Block;
use crate::order_statistics::{median, scale};

/// Up to so many blocks everything is learnt anew at every block; afterwards only when the
/// number of blocks has grown by 1/64, which keeps long campaigns linear. When that happens
/// depends on nothing but the number of past blocks, so the bets stay functions of the past.
const LEARN_AT_EVERY_BLOCK: usize = 256;
const GROWTH: usize = 64;

/// So many blocks are bet on by sign alone, before a scale is trusted.
pub const BLOCKS_FOR_A_SCALE: usize = 3;
/// So many blocks before a slot effect is looked for.
const BLOCKS_FOR_A_SLOT: usize = 6;
/// A slot effect is corrected when it exceeds so many scales over the root of n.
const SLOT_THRESHOLD: f64 = 2.5;

/// What was learnt: `scale` 0 means that none is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learnt {
    /// Robust standard deviation of the differences, after the slot effect.
    pub scale: f64,
    /// How much more, in log units, a trial takes in the second place of its block.
    pub slot: f64,
}

/// The blocks so far.
#[derive(Clone, Debug, Default)]
pub struct Past {
    differences: Vec<f64>,
    signs: Vec<f64>,
    learnt: Learnt,
    learnt_at: usize,
    scratch: Vec<f64>,
    residuals: Vec<f64>,
}

impl Past {
    /// What is known before the next block.
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

    /// What is known from all blocks, the last one included: for estimates, never for bets.
    pub fn in_hindsight(&self) -> Learnt {
        self.clone().learn()
    }

    /// Adds a block; one in which both trials timed out teaches nothing.
    pub fn add(&mut self, block: &Block) {
        if !block.difference.is_nan() {
            self.differences.push(block.difference);
            self.signs.push(block.order.sign());
        }
    }

    fn learn(&mut self) -> Learnt {
        let count = self.differences.len();
        if count < BLOCKS_FOR_A_SCALE {
            return Learnt::default();
        }
        self.scratch.clone_from(&self.differences);
        let Some(middle) = median(&mut self.scratch).filter(|middle| middle.is_finite()) else {
            return Learnt::default();
        };
        let plain = Learnt {
            scale: scale(&self.differences, middle, &mut self.scratch),
            slot: 0.0,
        };
        if count < BLOCKS_FOR_A_SLOT {
            return plain;
        }
        self.corrected().unwrap_or(plain)
    }

    /// The scale and the slot effect, if there is one beyond its noise.
    ///
    /// The slot effect is half the difference between the medians of the two orders. (The median
    /// of s·(d − median d) is drawn to 0 when the slot effect exceeds the noise, since the median
    /// of all differences then falls into the half of one order.)
    fn corrected(&mut self) -> Option<Learnt> {
        let second = self.median_of(1.0)?;
        let first = self.median_of(-1.0)?;
        let slot = Some(0.5 * (second - first)).filter(|slot| slot.is_finite())?;
        self.residuals.clear();
        let paired = self.differences.iter().zip(&self.signs);
        self.residuals
            .extend(paired.map(|(difference, sign)| difference - sign * slot));
        let middle = 0.5 * (second + first);
        let scale = scale(&self.residuals, middle, &mut self.scratch);
        let noise = SLOT_THRESHOLD * scale / (self.differences.len() as f64).sqrt();
        (slot.abs() > noise).then_some(Learnt { scale, slot })
    }

    /// The median of the differences of one order.
    fn median_of(&mut self, order: f64) -> Option<f64> {
        let paired = self.differences.iter().zip(&self.signs);
        self.scratch.clear();
        self.scratch.extend(
            paired
                .filter(|(_, sign)| **sign * order > 0.0)
                .map(|(difference, _)| *difference),
        );
        median(&mut self.scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Order;

    fn past(differences: &[f64], orders: &[Order]) -> Past {
        let mut past = Past::default();
        for (&difference, &order) in differences.iter().zip(orders) {
            past.add(&Block {
                difference,
                order,
                tolerance: 0.0,
            });
        }
        past
    }

    #[test]
    fn nothing_is_known_before_three_blocks() {
        let mut early = past(&[0.1, 0.2], &[Order::BaselineFirst; 2]);
        assert_eq!(early.learnt(), Learnt::default());
        let mut later = past(&[0.1, 0.2, 0.4], &[Order::BaselineFirst; 3]);
        assert!((later.learnt().scale - 1.4826 * 0.1).abs() < 1e-12);
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
    fn a_majority_of_timeouts_leaves_only_signs() {
        let infinity = f64::INFINITY;
        let mut past = past(
            &[infinity, infinity, 0.1, infinity],
            &[Order::BaselineFirst; 4],
        );
        assert_eq!(past.learnt(), Learnt::default());
    }
}
