//! The number of further blocks that an undecided campaign would probably take.

use crate::bet::{Bet, Round};
use crate::block::{Block, Order};
use crate::past::{Estimates, Past, Updates};
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

/// There is no forecast if none of so many first continuations stops: if half of all continuations
/// stopped, the chance of this would be one in a thousand.
const HOPELESS_CONTINUATIONS: usize = 10;
/// A continuation updates the estimates less often than a campaign does. The updates would take most
/// of the time, and the median hardly depends on them.
const UPDATES: Updates = Updates {
    every_block_up_to: 16,
    growth_divisor: 16,
};

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
        let difference_tests = if centre.typical.abs() >= self.margin {
            vec![self.test(0.0, 1.0, 1.0), self.test(0.0, -1.0, 1.0)]
        } else {
            Vec::new()
        };
        let equivalence_tests = if self.margin > 0.0 {
            vec![
                self.test(-self.margin, 1.0, EQUIVALENCE_LEVELS),
                self.test(self.margin, -1.0, EQUIVALENCE_LEVELS),
            ]
        } else {
            Vec::new()
        };
        self.median_length(
            campaign,
            StopTests::new(difference_tests, equivalence_tests),
        )
    }

    /// The median number of further blocks until the interval excludes `margin`, from either side;
    /// otherwise as `blocks_to_go`.
    #[must_use]
    pub fn blocks_to_exclude_margin(&self, campaign: &BettingSequence) -> Option<usize> {
        let tests = [1.0, -1.0].map(|sign| self.test(self.margin, sign, 1.0));
        self.median_length(campaign, StopTests::new(tests.into(), Vec::new()))
    }

    fn test(&self, theta: f64, sign: f64, levels: f64) -> ExclusionTest {
        ExclusionTest {
            theta,
            sign,
            threshold: 2.0 / (levels * self.level),
            memory: self.memory,
            wealth: Wealth::new(),
            excluded: false,
        }
    }

    fn median_length(&self, campaign: &BettingSequence, mut tests: StopTests) -> Option<usize> {
        for round in campaign.rounds() {
            tests.add(round);
        }
        let estimates = campaign.past().final_estimates();
        let past = campaign.past().without_covariates().with_updates(UPDATES);
        let mut seeds = SplitMix64::from_seed(self.seed);
        let majority = self.continuations / 2 + 1;
        let mut lengths = Vec::with_capacity(self.continuations);
        for continuation in 0..self.continuations {
            // A continuation that is longer than the median so far does not change the median.
            let max_length = lengths.get(majority - 1).copied();
            let mut random = SplitMix64::from_seed(seeds.next());
            let past_and_estimates = (&past, estimates);
            let length = continue_once(
                campaign,
                past_and_estimates,
                tests.clone(),
                &mut random,
                max_length.unwrap_or(self.max_blocks),
            );
            if let Some(length) = length {
                lengths.insert(lengths.partition_point(|other| *other < length), length);
            }
            let count = continuation + 1;
            let has_no_hope = lengths.is_empty() && count >= HOPELESS_CONTINUATIONS;
            if has_no_hope || lengths.len() + self.continuations - count < majority {
                return None;
            }
        }
        lengths.get(majority - 1).copied()
    }
}

/// Further blocks of one continuation until it stops, if it stops within the maximum.
fn continue_once(
    campaign: &BettingSequence,
    (past, estimates): (&Past, Estimates),
    mut tests: StopTests,
    random: &mut SplitMix64,
    max_blocks: usize,
) -> Option<usize> {
    let blocks = campaign.blocks();
    let mut past: Past = past.clone();
    for block_count in 1..=max_blocks {
        let drawn = blocks[random.below(blocks.len())];
        let order = Order::drawn(random.coin());
        let order_effect_change = estimates.order_effect * (order.sign() - drawn.order.sign());
        let difference = drawn.difference - estimates.explained_part(&drawn) + order_effect_change;
        let block = Block::new(difference, order, drawn.tolerance);
        tests.add(&Round {
            first: Bet::new(&block, past.estimates()),
            second: None,
        });
        past.add(&block);
        if tests.stop() {
            return Some(block_count);
        }
    }
    None
}

/// The tests on which a stop depends, and no other tests.
#[derive(Clone, Debug)]
struct StopTests {
    /// Tests of which one suffices.
    any: Vec<ExclusionTest>,
    /// Tests that suffice together, for "equivalent"; may be empty.
    all: Vec<ExclusionTest>,
    block_count: usize,
}

impl StopTests {
    fn new(any: Vec<ExclusionTest>, all: Vec<ExclusionTest>) -> Self {
        Self {
            any,
            all,
            block_count: 0,
        }
    }

    fn add(&mut self, round: &Round) {
        self.block_count += 1;
        for test in self.any.iter_mut().chain(&mut self.all) {
            test.add(round);
        }
    }

    fn stop(&self) -> bool {
        let are_equivalent = || !self.all.is_empty() && self.all.iter().all(|test| test.excluded);
        self.any.iter().any(|test| test.excluded)
            || (self.block_count >= EQUIVALENCE_BLOCKS && are_equivalent())
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
    fn the_margin_is_excluded_later_than_no_difference() {
        let noise: Vec<f64> = (0..30)
            .map(|i| 0.02 + f64::from((i * 37) % 101 - 50) / 1000.0)
            .collect();
        let until_margin = forecast(4000).blocks_to_exclude_margin(&campaign(&noise));
        assert!(until_margin > forecast(4000).blocks_to_go(&campaign(&noise)));
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
