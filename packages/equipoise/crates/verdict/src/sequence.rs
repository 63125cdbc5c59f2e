//! The bets on the coins that ordered the blocks, and the ratios that these bets exclude.

use crate::adjustment::{AdjustmentSummary, MAX_COVARIATES, NO_READINGS};
use crate::bet::{Bet, Round};
use crate::block::{Block, InvalidBlock};
use crate::centre::Centre;
use crate::past::{Estimates, Past, scale_of};
use crate::rules::MIN_TOLERANCE;
use crate::search::last_that_holds;
use crate::wealth::{Wealth, ln_sum_exp};

/// The direction of the bets against a log ratio θ.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    /// Bets that the log ratio is above θ. Their wealth is E⁺(θ); it excludes low θ.
    Slower,
    /// Bets that the log ratio is below θ. Their wealth is E⁻(θ); it excludes high θ.
    Faster,
}

impl Side {
    pub(crate) fn sign(self) -> f64 {
        match self {
            Self::Slower => 1.0,
            Self::Faster => -1.0,
        }
    }
}

/// The blocks of one pair of conditions, and the bets on them.
///
/// Every bet depends only on the blocks before it. Assume that the ratio is constant and that no
/// trial affects the next. Then the chance that the true θ is ever excluded at `level` is at most
/// `level` (docs/methods/interval.md).
#[derive(Clone, Debug, Default)]
pub struct BettingSequence {
    rounds: Vec<Round>,
    /// The candidate against the baseline.
    blocks: Vec<Block>,
    /// The candidate against the control; empty without a control.
    controls: Vec<Block>,
    past: Past,
    adjustments: AdjustmentHistory,
}

impl BettingSequence {
    /// Adds the next block.
    ///
    /// # Errors
    /// If the tolerance is negative, infinite or NaN.
    pub fn push(&mut self, block: Block) -> Result<(), InvalidBlock> {
        let block = with_valid_tolerance(block)?;
        let estimates = self.past.estimates();
        self.adjustments.add(estimates, &block);
        self.rounds.push(Round {
            first: Bet::new(&block, estimates),
            second: None,
        });
        self.past.add(&block);
        self.blocks.push(block);
        Ok(())
    }

    /// Adds the next block of a campaign with a control (a second run of the baseline). `block`
    /// compares the candidate with the baseline, `control` the candidate with the control. Each bet
    /// has half of the stake.
    ///
    /// # Errors
    /// If a tolerance is negative, infinite or NaN.
    pub fn push_pooled(&mut self, block: Block, control: Block) -> Result<(), InvalidBlock> {
        let (block, control) = (with_valid_tolerance(block)?, with_valid_tolerance(control)?);
        let estimates = self.past.estimates();
        self.adjustments.add(estimates, &block);
        self.rounds.push(Round {
            first: Bet::new(&block, estimates),
            second: Some(Bet::new(&control, estimates)),
        });
        self.past.add(&block);
        self.past.add(&control);
        self.blocks.push(block);
        self.controls.push(control);
        Ok(())
    }

    /// The number of blocks, ties included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is no block yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The blocks so far, with the candidate against the baseline, not against the control.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(crate) fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    pub(crate) fn past(&self) -> &Past {
        &self.past
    }

    /// The running interval (low, high): all θ against which no wealth ever reached 2/level.
    ///
    /// These bets stake no more than a win needs to reach 2/level (`Wealth::bet_towards`). A bound
    /// is infinite while nothing on its side is excluded. If `low > high`, no constant ratio agrees
    /// with all blocks.
    #[must_use]
    pub fn running_interval(&self, level: f64) -> (f64, f64) {
        self.interval(|side, theta| self.first_exclusion(side, theta, level).is_some())
    }

    /// The interval at the stop (low, high): all θ against which the last wealth is below 2/level.
    /// It is never empty (Xu, Wang and Ramdas 2022).
    #[must_use]
    pub fn interval_at_stop(&self, level: f64) -> (f64, f64) {
        let threshold = (2.0 / level).ln();
        self.interval(|side, theta| self.ln_wealth(side, theta) >= threshold)
    }

    /// ln of ½(E⁺(0) + E⁻(0)) after the last block: the evidence against "no difference".
    #[must_use]
    pub fn ln_e_value(&self) -> f64 {
        self.ln_e_value_beyond(0.0)
    }

    /// ln of ½(E⁺(margin) + E⁻(−margin)) after the last block: the evidence against a difference
    /// of at most `margin` either way.
    #[must_use]
    pub fn ln_e_value_beyond(&self, margin: f64) -> f64 {
        let ln_wealths =
            [Side::Slower, Side::Faster].map(|side| self.ln_wealth(side, side.sign() * margin));
        ln_sum_exp(&ln_wealths) - std::f64::consts::LN_2
    }

    /// ln of E⁺(theta) after the last block: the evidence against a difference of at most `theta`.
    #[must_use]
    pub fn ln_e_value_above(&self, theta: f64) -> f64 {
        self.ln_wealth(Side::Slower, theta)
    }

    /// The number of blocks after which the running interval first excluded `theta`, if ever.
    #[must_use]
    pub fn blocks_to_exclude(&self, theta: f64, level: f64) -> Option<usize> {
        let slower = self.first_exclusion(Side::Slower, theta, level);
        let faster = self.first_exclusion(Side::Faster, theta, level);
        match (slower, faster) {
            (Some(slower), Some(faster)) => Some(slower.min(faster)),
            (slower, faster) => slower.or(faster),
        }
    }

    /// The typical difference and the order effect, from all blocks.
    #[must_use]
    pub fn centre(&self) -> Option<Centre> {
        let differences = [self.blocks.as_slice(), &self.controls].concat();
        Centre::of(&differences, self.past.final_estimates())
    }

    /// The same blocks without their covariates.
    #[must_use]
    pub fn unadjusted(&self) -> Self {
        let without_readings = |block: &Block| Block {
            readings: NO_READINGS,
            ..*block
        };
        let mut sequence = Self::default();
        let mut controls = self.controls.iter();
        for block in &self.blocks {
            let pushed = match controls.next() {
                Some(control) => {
                    sequence.push_pooled(without_readings(block), without_readings(control))
                }
                None => sequence.push(without_readings(block)),
            };
            debug_assert!(pushed.is_ok(), "the tolerances were checked before");
        }
        sequence
    }

    /// The effect of the adjustment for covariates; `None` if no block was adjusted.
    #[must_use]
    pub fn adjustment(&self) -> Option<AdjustmentSummary> {
        let (covariate, blocks) = self.adjustments.most_used()?;
        let finite_blocks = || {
            let paired = self.blocks.iter().zip(&self.adjustments.explained_parts);
            paired.filter(|(block, _)| block.difference.is_finite())
        };
        let spread = |differences: Vec<f64>| scale_of(&differences, &mut Vec::new());
        let before = spread(finite_blocks().map(|(block, _)| block.difference).collect());
        let after = spread(
            finite_blocks()
                .map(|(block, explained)| block.difference - explained)
                .collect(),
        );
        Some(AdjustmentSummary {
            covariate,
            blocks,
            spread_ratio: if before > 0.0 { after / before } else { 1.0 },
        })
    }

    fn first_exclusion(&self, side: Side, theta: f64, level: f64) -> Option<usize> {
        let threshold = 2.0 / level;
        let mut wealth = Wealth::new();
        for (index, round) in self.rounds.iter().enumerate() {
            if round.play_towards(&mut wealth, theta, side.sign(), threshold) {
                return Some(index + 1);
            }
        }
        None
    }

    fn ln_wealth(&self, side: Side, theta: f64) -> f64 {
        let mut wealth = Wealth::new();
        for round in &self.rounds {
            round.play(&mut wealth, theta, side.sign());
        }
        wealth.ln()
    }

    fn interval(&self, excludes: impl Fn(Side, f64) -> bool) -> (f64, f64) {
        interval(self.span(), excludes)
    }

    /// Two θ outside which no payoff changes.
    pub(crate) fn span(&self) -> (f64, f64) {
        let spans = || self.rounds.iter().filter_map(Round::span);
        let low = spans().map(|(low, _)| low).fold(0.0, f64::min);
        let high = spans().map(|(_, high)| high).fold(0.0, f64::max);
        (low - 1.0, high + 1.0)
    }
}

/// The interval of the θ that neither side excludes.
///
/// Payoffs never rise with θ, so each side excludes all θ beyond one limit. Bisection finds this
/// limit. Outside (`below`, `above`), no payoff changes.
pub(crate) fn interval(
    (below, above): (f64, f64),
    excludes: impl Fn(Side, f64) -> bool,
) -> (f64, f64) {
    let interval_end = |side: Side, outside: f64, beyond: f64| {
        if !excludes(side, outside) {
            -side.sign() * f64::INFINITY
        } else if excludes(side, beyond) {
            side.sign() * f64::INFINITY
        } else {
            last_that_holds(outside, beyond, |theta| excludes(side, theta))
        }
    };
    (
        interval_end(Side::Slower, below, above),
        interval_end(Side::Faster, above, below),
    )
}

/// The part of each block's difference that a covariate explained at the bet on the block.
#[derive(Clone, Debug, Default)]
struct AdjustmentHistory {
    explained_parts: Vec<f64>,
    block_count: usize,
    blocks_by_covariate: [usize; MAX_COVARIATES],
}

impl AdjustmentHistory {
    fn add(&mut self, estimates: Estimates, block: &Block) {
        let explained = estimates.explained_part(block);
        self.explained_parts.push(explained);
        if let Some(adjustment) = estimates.adjustment.filter(|_| explained != 0.0) {
            self.block_count += 1;
            self.blocks_by_covariate[adjustment.covariate] += 1;
        }
    }

    /// The covariate that adjusted most blocks, and the number of all adjusted blocks.
    fn most_used(&self) -> Option<(usize, usize)> {
        let counts = self.blocks_by_covariate.iter().enumerate();
        let (covariate, _) = counts.rev().max_by_key(|(_, count)| **count)?;
        (self.block_count > 0).then_some((covariate, self.block_count))
    }
}

/// The block, with a tolerance that is at least the rounding of floats.
fn with_valid_tolerance(block: Block) -> Result<Block, InvalidBlock> {
    if block.tolerance.is_finite() && block.tolerance >= 0.0 {
        Ok(Block {
            tolerance: block.tolerance.max(MIN_TOLERANCE),
            ..block
        })
    } else {
        Err(InvalidBlock {
            tolerance: block.tolerance,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::block::Order::{self, BaselineFirst, CandidateFirst};
    use crate::rules::{BETTORS, Bettor};

    pub(crate) fn sequence(blocks: &[(f64, Order)], tolerance: f64) -> BettingSequence {
        let mut sequence = BettingSequence::default();
        for &(difference, order) in blocks {
            let block = Block::new(difference, order, tolerance);
            sequence.push(block).expect("the tolerance is from 0 up");
        }
        sequence
    }

    pub(crate) fn alternating(differences: &[f64]) -> Vec<(f64, Order)> {
        let orders = [BaselineFirst, CandidateFirst].into_iter().cycle();
        differences.iter().copied().zip(orders).collect()
    }

    #[test]
    fn nothing_is_excluded_before_the_seventh_block() {
        let six = sequence(&alternating(&[0.1; 6]), 0.0);
        assert_eq!(
            six.running_interval(0.05),
            (f64::NEG_INFINITY, f64::INFINITY)
        );
        assert_eq!(six.blocks_to_exclude(0.0, 0.05), None);
        let seven = sequence(&alternating(&[0.1; 7]), 0.0);
        let (low, high) = seven.running_interval(0.05);
        assert!(0.0 < low && low < 0.1 && 0.1 < high && high.is_finite());
        assert_eq!(seven.blocks_to_exclude(0.0, 0.05), Some(7));
    }

    #[test]
    fn the_first_bet_is_on_the_sign_and_later_bets_are_on_the_limited_size() {
        let four = sequence(&alternating(&[0.10, 0.20, 0.30, 0.26]), 0.0);
        // After one and two blocks the scale is the root mean square. Before block 4 the median is
        // 0.2, and no difference is more than 1.5 · 1.4826 · 0.1 away from it.
        let scale = (0.02_f64 / (3.0 * 0.778_465_216)).sqrt() * 4.0 / 3.0;
        let payoffs = [
            -1.0,
            -0.05 / (1.25 * 0.1),
            0.05 / (1.25 * 0.025_f64.sqrt()),
            0.01 / (1.25 * scale),
        ];
        let won = |bettor: Bettor| {
            payoffs.iter().fold(bettor.weight, |money, payoff| {
                money * (1.0 + (bettor.slope * payoff).clamp(-bettor.cap, bettor.cap))
            })
        };
        let by_hand: f64 = BETTORS.map(won).iter().sum();
        let computed = four.ln_wealth(Side::Slower, 0.25);
        assert!((computed - by_hand.ln()).abs() < 1e-9);
    }

    #[test]
    fn the_e_value_is_the_mean_of_both_sides() {
        let won = sequence(&alternating(&[0.1, 0.2]), 0.0);
        let mean = |sign: f64| -> f64 {
            BETTORS
                .map(|bettor| bettor.weight * (1.0 + sign * bettor.cap).powi(2))
                .iter()
                .sum()
        };
        let by_hand = 0.5 * (mean(1.0) + mean(-1.0));
        assert!((won.ln_e_value() - by_hand.ln()).abs() < 1e-12);
    }

    #[test]
    fn differences_within_the_tolerance_change_no_wealth() {
        let ties = sequence(&alternating(&[0.1; 100]), 0.11);
        assert!(ties.ln_e_value().abs() < 1e-12);
        assert_eq!(ties.blocks_to_exclude(0.0, 0.05), None);
        assert_eq!(ties.blocks_to_exclude(-0.2, 0.05), Some(7));
    }

    #[test]
    fn a_block_in_which_both_timed_out_is_a_tie() {
        let ties = sequence(&alternating(&[f64::NAN; 50]), 0.0);
        assert_eq!(ties.len(), 50);
        assert!(ties.ln_e_value().abs() < 1e-12);
        assert_eq!(
            ties.running_interval(0.05),
            (f64::NEG_INFINITY, f64::INFINITY)
        );
        assert!(ties.centre().is_none());
    }

    #[test]
    fn a_candidate_that_always_times_out_is_slower_than_any_ratio() {
        let timeouts = sequence(&alternating(&[f64::INFINITY; 7]), 0.0);
        let (low, high) = timeouts.running_interval(0.05);
        assert!(low == f64::INFINITY && high == f64::INFINITY);
    }

    #[test]
    fn exchanged_conditions_have_the_mirrored_interval() {
        let differences: Vec<f64> = (0..60).map(|i| f64::from((i * 37) % 23) / 500.0).collect();
        let blocks = alternating(&differences);
        let mirrored: Vec<(f64, Order)> = blocks
            .iter()
            .map(|&(difference, order)| {
                let exchanged = match order {
                    BaselineFirst => CandidateFirst,
                    CandidateFirst => BaselineFirst,
                };
                (-difference, exchanged)
            })
            .collect();
        let (low, high) = sequence(&blocks, 0.0).running_interval(0.05);
        let (mirrored_low, mirrored_high) = sequence(&mirrored, 0.0).running_interval(0.05);
        assert!(low.is_finite() && high.is_finite());
        assert!((low + mirrored_high).abs() < 1e-14 && (high + mirrored_low).abs() < 1e-14);
    }

    #[test]
    fn the_running_interval_is_inside_the_interval_at_the_stop() {
        let differences: Vec<f64> = (0..200)
            .map(|i| f64::from((i * 37) % 101) / 999.0)
            .collect();
        let blocks = sequence(&alternating(&differences), 0.0);
        let (low, high) = blocks.running_interval(0.05);
        let (stop_low, stop_high) = blocks.interval_at_stop(0.05);
        assert!(stop_low <= low && low < high && high <= stop_high);
    }

    #[test]
    fn evidence_beyond_a_margin_is_weaker_and_the_same_for_slower_and_faster() {
        let slower: Vec<f64> = (0..40)
            .map(|i| 0.05 + f64::from((i * 37) % 11) / 1e3)
            .collect();
        let faster: Vec<f64> = slower.iter().map(|difference| -difference).collect();
        let blocks = sequence(&alternating(&slower), 0.0);
        let evidence = blocks.ln_e_value_beyond(0.053);
        assert!(blocks.ln_e_value_beyond(0.08) < 0.0);
        assert!(0.0 < evidence && evidence < blocks.ln_e_value());
        let mirrored = sequence(&alternating(&faster), 0.0).ln_e_value_beyond(0.053);
        assert!((evidence - mirrored).abs() < 1e-9);
        let one_sided = blocks.ln_e_value_above(0.053);
        assert!(evidence < one_sided && one_sided < evidence + std::f64::consts::LN_2);
        let (low, _) = blocks.interval_at_stop(2.0 / one_sided.exp());
        assert!((low - 0.053).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_that_changes_empties_the_running_interval_but_not_the_interval_at_the_stop() {
        let differences: Vec<f64> = (0..400)
            .map(|i| f64::from((i * 37) % 11) / 1e4 + if i < 200 { 0.0 } else { 1.0 })
            .collect();
        let blocks = sequence(&alternating(&differences), 0.0);
        let (low, high) = blocks.running_interval(0.05);
        assert!(low > high);
        let (stop_low, stop_high) = blocks.interval_at_stop(0.05);
        assert!(stop_low <= stop_high);
    }

    #[test]
    fn a_control_that_contradicts_the_baseline_cancels_its_bet() {
        let mut pooled = BettingSequence::default();
        for _ in 0..8 {
            let block = |difference| Block::new(difference, BaselineFirst, 0.0);
            pooled
                .push_pooled(block(0.1), block(-0.1))
                .expect("the tolerances are from 0 up");
        }
        // One bet wins the amount that the other bet loses.
        assert!(pooled.ln_e_value().abs() < 1e-12);
        assert_eq!(pooled.len(), 8);
        assert_eq!(pooled.blocks().len(), 8);
        let centre = pooled.centre().expect("there are differences");
        assert!(centre.typical.abs() < 1e-12);
    }

    #[test]
    fn a_control_that_agrees_with_the_baseline_keeps_the_centre() {
        let differences: Vec<f64> = (0..60).map(|i| f64::from((i * 37) % 23) / 500.0).collect();
        let single = sequence(&alternating(&differences), 0.0);
        let mut pooled = BettingSequence::default();
        for block in single.blocks() {
            pooled
                .push_pooled(*block, *block)
                .expect("the tolerance is from 0 up");
        }
        assert!(pooled.ln_wealth(Side::Slower, 0.01) > 0.0);
        assert_eq!(
            pooled.centre().map(|c| c.typical),
            single.centre().map(|c| c.typical)
        );
    }

    #[test]
    fn the_rounding_of_floats_changes_no_wealth() {
        let rounded = sequence(&alternating(&[0.03 + 4e-17; 100]), 0.0);
        let (low, high) = rounded.running_interval(0.05);
        assert!(low < 0.03 && 0.03 < high && high - low < 1e-11);
        let exact = sequence(&alternating(&[1e-14; 100]), 0.0);
        assert_eq!(exact.blocks_to_exclude(0.0, 0.05), None);
    }

    #[test]
    fn an_invalid_tolerance_is_refused() {
        let block = Block::new(0.0, BaselineFirst, f64::INFINITY);
        assert!(BettingSequence::default().push(block).is_err());
    }
}
