//! The smallest effect that a campaign of a given length detects.

use crate::adjustment::NO_READINGS;
use crate::bet::{Bet, Round};
use crate::block::{Block, Order};
use crate::past::{BLOCKS_FOR_A_SPREAD, Past};
use crate::wealth::Wealth;
use equipoise_random::SplitMix64;

/// Bisections of an effect; twenty halve it to a millionth of the largest.
const BISECTIONS: usize = 20;

/// The campaigns to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Sensitivity {
    /// Blocks of a campaign.
    pub blocks: usize,
    /// 1 minus the coverage of its interval.
    pub level: f64,
    /// Campaigns to simulate.
    pub campaigns: usize,
    /// Their seed.
    pub seed: u64,
}

impl Sensitivity {
    /// The smallest effect that each simulated campaign calls slower at any of its blocks, in log
    /// units and increasing; infinite where it calls not even `largest`.
    ///
    /// A campaign draws its blocks from `noise`, the block differences of campaigns without an
    /// effect, with fresh coins.
    #[must_use]
    pub fn smallest_effects(&self, noise: &[f64], largest: f64) -> Vec<f64> {
        let mut random = SplitMix64::new(self.seed);
        let mut effects: Vec<f64> = (0..self.campaigns)
            .map(|_| Campaign::drawn(self, noise, &mut random).smallest_effect(self, largest))
            .collect();
        effects.sort_unstable_by(f64::total_cmp);
        effects
    }
}

/// A campaign without an effect.
struct Campaign {
    /// Its first blocks: the scale learnt from them depends on the effect.
    early: Vec<Block>,
    /// The bets on its later blocks: values learnt from three or more blocks do not depend on the
    /// effect, so a bet on shifted blocks is the same bet at a shifted ratio.
    later: Vec<Round>,
}

impl Campaign {
    fn drawn(sensitivity: &Sensitivity, noise: &[f64], random: &mut SplitMix64) -> Self {
        let mut past = Past::default();
        let (mut early, mut later) = (Vec::new(), Vec::new());
        for number in 0..sensitivity.blocks {
            let block = drawn_block(noise, random);
            if number < BLOCKS_FOR_A_SPREAD {
                early.push(block);
            } else {
                later.push(round(&block, &mut past));
            }
            past.add(&block);
        }
        Self { early, later }
    }

    fn smallest_effect(&self, sensitivity: &Sensitivity, largest: f64) -> f64 {
        if !self.calls(sensitivity, largest) {
            return f64::INFINITY;
        }
        let (mut missed, mut called) = (0.0, largest);
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (missed + called);
            if self.calls(sensitivity, middle) {
                called = middle;
            } else {
                missed = middle;
            }
        }
        called
    }

    /// Whether "no difference" is excluded on the side of the effect, at any block.
    fn calls(&self, sensitivity: &Sensitivity, effect: f64) -> bool {
        let threshold = 2.0 / sensitivity.level;
        let mut wealth = Wealth::new();
        let mut past = Past::default();
        for block in &self.early {
            let shifted = Block {
                difference: block.difference + effect,
                ..*block
            };
            let reached = round(&shifted, &mut past).play_towards(&mut wealth, 0.0, 1.0, threshold);
            past.add(&shifted);
            if reached {
                return true;
            }
        }
        self.later
            .iter()
            .any(|round| round.play_towards(&mut wealth, -effect, 1.0, threshold))
    }
}

fn drawn_block(noise: &[f64], random: &mut SplitMix64) -> Block {
    Block {
        difference: noise[random.below(noise.len())],
        order: if random.coin() {
            Order::BaselineFirst
        } else {
            Order::CandidateFirst
        },
        tolerance: 0.0,
        readings: NO_READINGS,
    }
}

fn round(block: &Block, past: &mut Past) -> Round {
    Round {
        first: Bet::new(block, past.learnt()),
        second: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::BettingSequence;

    fn noise() -> Vec<f64> {
        (0..101)
            .map(|i| f64::from((i * 37) % 101 - 50) / 50.0)
            .collect()
    }

    fn sensitivity(blocks: usize) -> Sensitivity {
        Sensitivity {
            blocks,
            level: 0.05,
            campaigns: 5,
            seed: 3,
        }
    }

    #[test]
    fn a_campaign_calls_what_the_bets_exclude() {
        for seed in 1..=4 {
            let simulated = sensitivity(60);
            let campaign = Campaign::drawn(&simulated, &noise(), &mut SplitMix64::new(seed));
            for effect in [0.2, 0.5, 1.0] {
                let mut random = SplitMix64::new(seed);
                let mut sequence = BettingSequence::default();
                for _ in 0..simulated.blocks {
                    let mut block = drawn_block(&noise(), &mut random);
                    block.difference += effect;
                    sequence.push(block).expect("the tolerance is 0");
                }
                let excluded = sequence.running_interval(simulated.level).0 > 0.0;
                assert_eq!(campaign.calls(&simulated, effect), excluded);
            }
        }
    }

    #[test]
    fn an_effect_that_no_campaign_calls_is_infinite() {
        let short = sensitivity(3).smallest_effects(&noise(), 9.0);
        assert!(short.iter().all(|effect| effect.is_infinite()));
    }

    #[test]
    fn more_blocks_tell_smaller_effects() {
        let median = |blocks| sensitivity(blocks).smallest_effects(&noise(), 9.0)[2];
        assert!(median(1000) < 0.5 * median(100));
    }
}
