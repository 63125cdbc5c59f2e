//! One bet on the coin of one block.

use crate::block::Block;
use crate::past::Learnt;
use crate::rules::CLIP;
use crate::wealth::Wealth;

/// One bet; its payoff is a function of θ that never rises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bet {
    centre: f64,
    /// Infinite for a bet on the sign alone.
    inverse_width: f64,
    tolerance: f64,
}

impl Bet {
    pub(crate) fn new(block: &Block, learnt: Learnt) -> Self {
        if block.difference.is_nan() {
            return Self {
                centre: 0.0,
                inverse_width: f64::INFINITY,
                tolerance: f64::INFINITY,
            };
        }
        Self {
            centre: learnt.rest_of(block),
            inverse_width: (CLIP * learnt.scale).max(block.tolerance).recip(),
            tolerance: block.tolerance,
        }
    }

    /// ψ(θ), from −1 to 1: 0 within the tolerance, and continuous beyond it.
    ///
    /// A jump would turn the rounding of coarse clocks into money: the steps that their readings
    /// make are not symmetric around a θ that is not 0.
    pub(crate) fn payoff(&self, theta: f64) -> f64 {
        let distance = self.centre - theta;
        let beyond = distance.abs() - self.tolerance;
        if beyond > 0.0 {
            (beyond * self.inverse_width).min(1.0).copysign(distance)
        } else {
            0.0
        }
    }

    /// The θ between which the payoff changes, if it ever does.
    pub(crate) fn span(&self) -> Option<(f64, f64)> {
        let reach = self.inverse_width.recip() + self.tolerance;
        (self.centre.is_finite() && reach.is_finite())
            .then_some((self.centre - reach, self.centre + reach))
    }
}

/// The stake on the coins of one block: one bet, or the mean of two on the same block.
///
/// Each bet is fair given everything that exchanging its pair leaves unchanged, so their mean is
/// fair too, whatever they have in common (docs/methods/control.md).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) first: Bet,
    pub(crate) second: Option<Bet>,
}

impl Round {
    /// Play the round at θ: `sign` is 1 for the bettors on "slower", −1 for the bettors on
    /// "faster".
    pub(crate) fn play(&self, wealth: &mut Wealth, theta: f64, sign: f64) {
        let first = sign * self.first.payoff(theta);
        match &self.second {
            None => wealth.bet(first),
            Some(second) => wealth.bet_on_both(first, sign * second.payoff(theta)),
        }
    }

    /// Play the round at θ on the way to a bar; returns whether the wealth reaches the bar.
    ///
    /// Each of the two pairs of a round is fair alone, and their sum is not a fair coin. A clamp of
    /// one of them must not change the other, and could then reach the bar later than without a
    /// clamp: such a round is played in full.
    pub(crate) fn play_towards(
        &self,
        wealth: &mut Wealth,
        theta: f64,
        sign: f64,
        bar: f64,
    ) -> bool {
        if self.second.is_none() {
            return wealth.bet_towards(sign * self.first.payoff(theta), bar);
        }
        self.play(wealth, theta, sign);
        wealth.total() >= bar
    }

    /// Two θ outside which the payoff is constant; `None` if it is constant everywhere.
    pub(crate) fn span(&self) -> Option<(f64, f64)> {
        let second = self.second.as_ref().and_then(Bet::span);
        match (self.first.span(), second) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjustment::NO_READINGS;
    use crate::block::Order::BaselineFirst;

    #[test]
    fn beyond_the_tolerance_the_payoff_rises_without_a_jump() {
        let block = Block {
            difference: 0.1,
            order: BaselineFirst,
            tolerance: 0.04,
            readings: NO_READINGS,
        };
        let bet = |scale| {
            let learnt = Learnt {
                scale,
                ..Learnt::default()
            };
            Bet::new(&block, learnt)
        };
        let coarse = bet(0.01);
        assert!(coarse.payoff(0.061).abs() < f64::MIN_POSITIVE);
        assert!((coarse.payoff(0.05) - 0.25).abs() < 1e-12);
        assert!((coarse.payoff(0.15) + 0.25).abs() < 1e-12);
        assert!((coarse.payoff(0.0) - 1.0).abs() < 1e-12);
        let noisy = bet(0.08);
        assert!((noisy.payoff(0.04) - 0.2).abs() < 1e-12);
    }
}
