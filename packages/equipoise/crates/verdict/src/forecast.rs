//! The number of further blocks that an undecided campaign would probably take.

use crate::bet::{Bet, Round};
use crate::block::{Block, Order};
use crate::past::{Estimates, Past};
use crate::rules::{EQUIVALENCE_BLOCKS, EQUIVALENCE_LEVELS};
use crate::sequence::BettingSequence;
use crate::wealth::Wealth;
use equipoise_random::SplitMix64;

/// Whether a ratio stays excluded if the wealth falls again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The ratio stays excluded, as in the running interval.
    Running,
    /// The ratio is excluded only while the wealth is high enough, as in the interval at the stop.
    AtStop,
}

/// The settings of a forecast.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// 1 minus the coverage of the interval.
    pub level: f64,
    /// The smallest difference that matters, in log units.
    pub margin: f64,
    /// Whether excluded ratios stay excluded.
    pub memory: Memory,
    /// Largest number of further blocks that a continuation may have.
    pub max_blocks: usize,
    /// Number of continuations to simulate.
    pub continuations: usize,
    /// Seed of the random draws.
    pub seed: u64,
}

impl Forecast {
    /// The median number of further blocks until a verdict, over simulated continuations; `None` if
    /// half of the continuations reach no verdict within the maximum.
    ///
    /// A continuation draws blocks of the campaign, with a new coin for each block. The new order
    /// also changes the sign of the order effect. It assumes that the estimate is true. If the
    /// estimate is below `margin`, the verdict can only become "equivalent".
    #[must_use]
    pub fn blocks_to_go(&self, campaign: &BettingSequence) -> Option<usize> {
        let centre = campaign.centre()?;
        let mut tests = VerdictTests::new(self, centre.typical.abs() >= self.margin);
        for round in campaign.rounds() {
            tests.add(round);
        }
        let estimates = campaign.past().final_estimates();
        let past = campaign.past().without_covariates();
        let mut random = SplitMix64::from_seed(self.seed);
        let majority = self.continuations / 2 + 1;
        let mut lengths = Vec::with_capacity(self.continuations);
        for continuation in 0..self.continuations {
            let past_and_estimates = (&past, estimates);
            let length =
                self.continue_once(campaign, past_and_estimates, tests.clone(), &mut random);
            lengths.extend(length);
            let remaining = self.continuations - continuation - 1;
            if lengths.len() + remaining < majority {
                return None;
            }
        }
        lengths.sort_unstable();
        lengths.get(majority - 1).copied()
    }

    /// Further blocks of one continuation until its verdict, if it has one within the maximum.
    fn continue_once(
        &self,
        campaign: &BettingSequence,
        (past, estimates): (&Past, Estimates),
        mut tests: VerdictTests,
        random: &mut SplitMix64,
    ) -> Option<usize> {
        let blocks = campaign.blocks();
        let mut past: Past = past.clone();
        for block_count in 1..=self.max_blocks {
            let drawn = blocks[random.below(blocks.len())];
            let order = Order::drawn(random.coin());
            let order_effect_change = estimates.order_effect * (order.sign() - drawn.order.sign());
            let difference =
                drawn.difference - estimates.explained_part(&drawn) + order_effect_change;
            let block = Block::new(difference, order, drawn.tolerance);
            tests.add(&Round {
                first: Bet::new(&block, past.estimates()),
                second: None,
            });
            past.add(&block);
            if tests.is_decided() {
                return Some(block_count);
            }
        }
        None
    }
}

/// The tests of the log ratios on which a verdict depends: −margin, margin, and 0 from both sides.
#[derive(Clone, Debug)]
struct VerdictTests {
    tests: [ExclusionTest; 4],
    /// Whether the estimate is at least the margin, so that a difference may be reported.
    can_differ: bool,
    block_count: usize,
}

impl VerdictTests {
    fn new(forecast: &Forecast, can_differ: bool) -> Self {
        let equivalence_level = EQUIVALENCE_LEVELS * forecast.level;
        let test = |theta: f64, sign: f64, level: f64| ExclusionTest {
            theta,
            sign,
            threshold: 2.0 / level,
            memory: forecast.memory,
            wealth: Wealth::new(),
            excluded: false,
        };
        Self {
            tests: [
                test(-forecast.margin, 1.0, equivalence_level),
                test(forecast.margin, -1.0, equivalence_level),
                test(0.0, 1.0, forecast.level),
                test(0.0, -1.0, forecast.level),
            ],
            can_differ,
            block_count: 0,
        }
    }

    fn add(&mut self, round: &Round) {
        self.block_count += 1;
        for test in &mut self.tests {
            test.add(round);
        }
    }

    fn is_decided(&self) -> bool {
        let [lower_margin, upper_margin, not_slower, not_faster] = &self.tests;
        let is_different = not_slower.excluded || not_faster.excluded;
        let is_within = upper_margin.theta > 0.0 && lower_margin.excluded && upper_margin.excluded;
        (self.can_differ && is_different) || (is_within && self.block_count >= EQUIVALENCE_BLOCKS)
    }
}

/// The test whether the bettors of one side exclude one log ratio.
#[derive(Clone, Debug)]
struct ExclusionTest {
    theta: f64,
    /// 1 for bettors on "slower than theta", −1 for bettors on "faster".
    sign: f64,
    threshold: f64,
    memory: Memory,
    wealth: Wealth,
    excluded: bool,
}

impl ExclusionTest {
    fn add(&mut self, round: &Round) {
        match self.memory {
            Memory::Running if self.excluded => {}
            Memory::Running => {
                let (theta, sign) = (self.theta, self.sign);
                let wealth = &mut self.wealth;
                self.excluded = round.play_towards(wealth, theta, sign, self.threshold);
            }
            Memory::AtStop => {
                round.play(&mut self.wealth, self.theta, self.sign);
                self.excluded = self.wealth.total() >= self.threshold;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::tests::{alternating, sequence};

    fn campaign(differences: &[f64]) -> BettingSequence {
        sequence(&alternating(differences), 0.0)
    }

    fn forecast(max_blocks: usize) -> Forecast {
        Forecast {
            level: 0.05,
            margin: 0.01,
            memory: Memory::Running,
            max_blocks,
            continuations: 40,
            seed: 7,
        }
    }

    #[test]
    fn a_clear_difference_after_five_blocks_needs_two_more() {
        let short = campaign(&[0.10, 0.11, 0.12, 0.10, 0.11]);
        assert_eq!(forecast(100).blocks_to_go(&short), Some(2));
    }

    #[test]
    fn there_is_no_forecast_for_a_difference_too_small_for_the_maximum_of_blocks() {
        let noise: Vec<f64> = (0..30)
            .map(|i| 0.011 + f64::from((i * 37) % 101 - 50) / 50.0)
            .collect();
        assert_eq!(forecast(50).blocks_to_go(&campaign(&noise)), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_forecast() {
        let noise: Vec<f64> = (0..30)
            .map(|i| 0.02 + f64::from((i * 37) % 101 - 50) / 1000.0)
            .collect();
        let first = forecast(4000).blocks_to_go(&campaign(&noise));
        assert!(first.is_some());
        assert_eq!(first, forecast(4000).blocks_to_go(&campaign(&noise)));
    }

    #[test]
    fn a_campaign_without_blocks_has_no_forecast() {
        assert_eq!(forecast(50).blocks_to_go(&BettingSequence::default()), None);
    }
}
