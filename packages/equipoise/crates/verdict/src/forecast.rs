//! How many more blocks an undecided campaign would probably take.

use crate::adjustment::NO_READINGS;
use crate::bet::{Bet, Round};
use crate::block::{Block, Order};
use crate::past::{Learnt, Past};
use crate::rules::{EQUIVALENCE_BLOCKS, EQUIVALENCE_LEVELS};
use crate::sequence::BettingSequence;
use crate::wealth::Wealth;
use equipoise_random::SplitMix64;

/// Whether an exclusion is permanent or holds only while the wealth lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// As in the running interval.
    Running,
    /// As in the interval at the stop.
    AtStop,
}

/// The question of the forecast.
#[derive(Clone, Copy, Debug)]
pub struct Forecast {
    /// 1 minus the coverage of the interval.
    pub level: f64,
    /// The smallest difference that matters, in log units.
    pub margin: f64,
    /// How exclusions are remembered.
    pub memory: Memory,
    /// Largest number of further blocks.
    pub cap: usize,
    /// How many continuations are drawn.
    pub continuations: usize,
    /// Their seed.
    pub seed: u64,
}

impl Forecast {
    /// The median, over continuations, of the number of further blocks to a verdict; `None` if
    /// half of them reach none within the cap.
    ///
    /// A continuation draws blocks of the campaign itself, with a fresh coin for each: the slot
    /// effect is taken out and put back by the new order. This takes the campaign's own estimate as
    /// the truth, so a difference with an estimate below `margin` can only become "equivalent". The
    /// part that a covariate explains stays removed.
    #[must_use]
    pub fn blocks_to_go(&self, campaign: &BettingSequence) -> Option<usize> {
        let centre = campaign.centre()?;
        let mut start = Watch::new(self, centre.typical.abs() >= self.margin);
        for round in campaign.rounds() {
            start.see(round);
        }
        let learnt = campaign.past().in_hindsight();
        let past = campaign.past().without_covariates();
        let mut random = SplitMix64::new(self.seed);
        let needed = self.continuations / 2 + 1;
        let mut lengths = Vec::with_capacity(self.continuations);
        for continuation in 0..self.continuations {
            let known = (&past, learnt);
            lengths.extend(self.continue_once(campaign, known, start.clone(), &mut random));
            let left = self.continuations - continuation - 1;
            if lengths.len() + left < needed {
                return None;
            }
        }
        lengths.sort_unstable();
        lengths.get(needed - 1).copied()
    }

    /// Further blocks until the verdict, if there is one within the cap.
    fn continue_once(
        &self,
        campaign: &BettingSequence,
        (past, learnt): (&Past, Learnt),
        mut watch: Watch,
        random: &mut SplitMix64,
    ) -> Option<usize> {
        let blocks = campaign.blocks();
        let mut past: Past = past.clone();
        for further in 1..=self.cap {
            let drawn = blocks[random.below(blocks.len())];
            let order = if random.coin() {
                Order::BaselineFirst
            } else {
                Order::CandidateFirst
            };
            let moved = learnt.slot * (order.sign() - drawn.order.sign());
            let block = Block {
                difference: drawn.difference - learnt.explained(&drawn) + moved,
                order,
                tolerance: drawn.tolerance,
                readings: NO_READINGS,
            };
            watch.see(&Round {
                first: Bet::new(&block, past.learnt()),
                second: None,
            });
            past.add(&block);
            if watch.decided() {
                return Some(further);
            }
        }
        None
    }
}

/// The bettors at the three ratios that a verdict turns on.
#[derive(Clone, Debug)]
struct Watch {
    excluded: [Excluded; 4],
    worth_calling: bool,
    seen: usize,
}

impl Watch {
    fn new(forecast: &Forecast, worth_calling: bool) -> Self {
        let equivalence_level = EQUIVALENCE_LEVELS * forecast.level;
        let bettor = |theta: f64, sign: f64, level: f64| Excluded {
            theta,
            sign,
            threshold: 2.0 / level,
            memory: forecast.memory,
            wealth: Wealth::new(),
            now: false,
        };
        Self {
            excluded: [
                bettor(-forecast.margin, 1.0, equivalence_level),
                bettor(forecast.margin, -1.0, equivalence_level),
                bettor(0.0, 1.0, forecast.level),
                bettor(0.0, -1.0, forecast.level),
            ],
            worth_calling,
            seen: 0,
        }
    }

    fn see(&mut self, round: &Round) {
        self.seen += 1;
        for excluded in &mut self.excluded {
            excluded.see(round);
        }
    }

    fn decided(&self) -> bool {
        let [below, above, no_slower, no_faster] = &self.excluded;
        let different = no_slower.now || no_faster.now;
        let within = above.theta > 0.0 && below.now && above.now;
        (self.worth_calling && different) || (within && self.seen >= EQUIVALENCE_BLOCKS)
    }
}

/// Whether one side excludes one ratio.
#[derive(Clone, Debug)]
struct Excluded {
    theta: f64,
    sign: f64,
    threshold: f64,
    memory: Memory,
    wealth: Wealth,
    now: bool,
}

impl Excluded {
    fn see(&mut self, round: &Round) {
        match self.memory {
            Memory::Running if self.now => {}
            Memory::Running => {
                let (theta, sign) = (self.theta, self.sign);
                self.now = round.play_towards(&mut self.wealth, theta, sign, self.threshold);
            }
            Memory::AtStop => {
                round.play(&mut self.wealth, self.theta, self.sign);
                self.now = self.wealth.total() >= self.threshold;
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

    fn forecast(cap: usize) -> Forecast {
        Forecast {
            level: 0.05,
            margin: 0.01,
            memory: Memory::Running,
            cap,
            continuations: 40,
            seed: 7,
        }
    }

    #[test]
    fn a_clear_difference_cut_short_needs_the_rest_of_seven_blocks() {
        let short = campaign(&[0.10, 0.11, 0.12, 0.10, 0.11]);
        assert_eq!(forecast(100).blocks_to_go(&short), Some(2));
    }

    #[test]
    fn a_difference_that_is_too_small_for_the_cap_has_no_forecast() {
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
    fn nothing_has_no_forecast() {
        assert_eq!(forecast(50).blocks_to_go(&BettingSequence::default()), None);
    }
}
