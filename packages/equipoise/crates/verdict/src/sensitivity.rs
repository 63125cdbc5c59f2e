//! The smallest effect that a campaign of a given length detects.

use crate::bet::{Bet, Round};
use crate::block::{Block, Order};
use crate::past::{MIN_BLOCKS_FOR_CLIPPED_SCALE, Past};
use crate::wealth::Wealth;
use equipoise_random::SplitMix64;

/// Number of bisections. They find an effect to a millionth of the largest effect.
const BISECTIONS: usize = 20;

/// The settings of the simulation.
#[derive(Clone, Copy, Debug)]
pub struct Sensitivity {
    /// Blocks of each campaign.
    pub blocks: usize,
    /// 1 minus the coverage of each campaign's interval.
    pub level: f64,
    /// Number of campaigns.
    pub campaigns: usize,
    /// Seed of the random draws.
    pub seed: u64,
}

impl Sensitivity {
    /// The smallest effect that each simulated campaign detects after any block, in log units, in
    /// increasing order. It is infinite for a campaign that does not detect `max_effect`.
    ///
    /// A campaign draws its blocks from `noise`, the block differences of campaigns without an
    /// effect. It draws a new coin for each block.
    #[must_use]
    pub fn smallest_effects(&self, noise: &[f64], max_effect: f64) -> Vec<f64> {
        let mut random = SplitMix64::from_seed(self.seed);
        let mut effects: Vec<f64> = (0..self.campaigns)
            .map(|_| Campaign::draw(self, noise, &mut random).smallest_effect(self, max_effect))
            .collect();
        effects.sort_unstable_by(f64::total_cmp);
        effects
    }
}

/// A simulated campaign without an effect.
struct Campaign {
    /// The first blocks. The scale estimated from them depends on the effect.
    early_blocks: Vec<Block>,
    /// The bets on the other blocks, without an effect. From three blocks on, an effect changes no
    /// estimate. So these bets against −δ are the bets against 0 in a campaign with the effect δ.
    later_rounds: Vec<Round>,
}

impl Campaign {
    fn draw(sensitivity: &Sensitivity, noise: &[f64], random: &mut SplitMix64) -> Self {
        let mut past = Past::default();
        let (mut early_blocks, mut later_rounds) = (Vec::new(), Vec::new());
        for index in 0..sensitivity.blocks {
            let block = draw_block(noise, random);
            if index < MIN_BLOCKS_FOR_CLIPPED_SCALE {
                early_blocks.push(block);
            } else {
                later_rounds.push(round(&block, &mut past));
            }
            past.add(&block);
        }
        Self {
            early_blocks,
            later_rounds,
        }
    }

    fn smallest_effect(&self, sensitivity: &Sensitivity, max_effect: f64) -> f64 {
        if !self.detects(sensitivity, max_effect) {
            return f64::INFINITY;
        }
        let (mut missed, mut detected) = (0.0, max_effect);
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (missed + detected);
            if self.detects(sensitivity, middle) {
                detected = middle;
            } else {
                missed = middle;
            }
        }
        detected
    }

    /// Whether "no difference" is excluded on the side of the effect, at any block.
    fn detects(&self, sensitivity: &Sensitivity, effect: f64) -> bool {
        let threshold = 2.0 / sensitivity.level;
        let mut wealth = Wealth::new();
        let mut past = Past::default();
        for block in &self.early_blocks {
            let shifted = Block {
                difference: block.difference + effect,
                ..*block
            };
            let round = round(&shifted, &mut past);
            past.add(&shifted);
            if round.play_towards(&mut wealth, 0.0, 1.0, threshold) {
                return true;
            }
        }
        self.later_rounds
            .iter()
            .any(|round| round.play_towards(&mut wealth, -effect, 1.0, threshold))
    }
}

fn draw_block(noise: &[f64], random: &mut SplitMix64) -> Block {
    let difference = noise[random.below(noise.len())];
    Block::new(difference, Order::drawn(random.coin()), 0.0)
}

fn round(block: &Block, past: &mut Past) -> Round {
    Round {
        first: Bet::new(block, past.estimates()),
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
    fn a_campaign_detects_an_effect_exactly_if_its_interval_excludes_no_difference() {
        for seed in 1..=4 {
            let simulated = sensitivity(60);
            let campaign = Campaign::draw(&simulated, &noise(), &mut SplitMix64::from_seed(seed));
            for effect in [0.2, 0.5, 1.0] {
                let mut random = SplitMix64::from_seed(seed);
                let mut sequence = BettingSequence::default();
                for _ in 0..simulated.blocks {
                    let mut block = draw_block(&noise(), &mut random);
                    block.difference += effect;
                    sequence.push(block).expect("the tolerance is 0");
                }
                let excluded = sequence.running_interval(simulated.level).0 > 0.0;
                assert_eq!(campaign.detects(&simulated, effect), excluded);
            }
        }
    }

    #[test]
    fn the_smallest_effect_is_infinite_if_no_campaign_detects_any() {
        let short = sensitivity(3).smallest_effects(&noise(), 9.0);
        assert!(short.iter().all(|effect| effect.is_infinite()));
    }

    #[test]
    fn more_blocks_detect_smaller_effects() {
        let median = |blocks| sensitivity(blocks).smallest_effects(&noise(), 9.0)[2];
        assert!(median(1000) < 0.5 * median(100));
    }
}
