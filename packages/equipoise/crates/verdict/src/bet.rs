//! One bet on the coin of one block.

use crate::block::Block;
use crate::past::Estimates;
use crate::rules::CLIP_SCALES;
use crate::wealth::Wealth;

/// A bet on one block against each log ratio θ. The payoff never rises with θ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bet {
    /// The block's difference, without the parts that the order effect and a covariate explain.
    centre: f64,
    /// 1 over the distance at which the payoff reaches ±1; infinite for a bet on the sign alone.
    inverse_width: f64,
    tolerance: f64,
}

impl Bet {
    pub(crate) fn new(block: &Block, estimates: Estimates) -> Self {
        if block.difference.is_nan() {
            return Self {
                centre: 0.0,
                inverse_width: f64::INFINITY,
                tolerance: f64::INFINITY,
            };
        }
        Self {
            centre: estimates.residual(block),
            inverse_width: (CLIP_SCALES * estimates.scale).max(block.tolerance).recip(),
            tolerance: block.tolerance,
        }
    }

    /// The payoff ψ(θ), from −1 to 1. The payoff is 0 within the tolerance, and grows from 0 beyond.
    /// A jump would let bets win by the rounding of a coarse clock.
    pub(crate) fn payoff(&self, theta: f64) -> f64 {
        let distance = self.centre - theta;
        let beyond = distance.abs() - self.tolerance;
        if beyond > 0.0 {
            (beyond * self.inverse_width).min(1.0).copysign(distance)
        } else {
            0.0
        }
    }

    /// The two θ between which the payoff changes; `None` if the payoff is the same for every θ.
    pub(crate) fn span(&self) -> Option<(f64, f64)> {
        let half_width = self.inverse_width.recip() + self.tolerance;
        (self.centre.is_finite() && half_width.is_finite())
            .then_some((self.centre - half_width, self.centre + half_width))
    }
}

/// The bets of one block: a single bet, or the mean of two bets if a control (a second run of the
/// baseline) ran (docs/methods/control.md).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// The bet on the candidate against the baseline.
    pub(crate) first: Bet,
    /// The bet on the candidate against the control.
    pub(crate) second: Option<Bet>,
}

impl Round {
    /// Plays the round at θ. `sign` is 1 for bettors on "slower", −1 for bettors on "faster".
    pub(crate) fn play(&self, wealth: &mut Wealth, theta: f64, sign: f64) {
        let first = sign * self.first.payoff(theta);
        match &self.second {
            None => wealth.bet(first),
            Some(second) => wealth.bet_on_both(first, sign * second.payoff(theta)),
        }
    }

    /// Plays the round at θ and returns whether the wealth has reached the threshold.
    ///
    /// The clamp of `Wealth::bet_towards` is only for a single bet.
    pub(crate) fn play_towards(
        &self,
        wealth: &mut Wealth,
        theta: f64,
        sign: f64,
        threshold: f64,
    ) -> bool {
        if self.second.is_none() {
            return wealth.bet_towards(sign * self.first.payoff(theta), threshold);
        }
        self.play(wealth, theta, sign);
        wealth.total() >= threshold
    }

    /// The two θ between which the payoff changes; `None` if the payoff is the same for every θ.
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
    use crate::block::Order::BaselineFirst;

    #[test]
    fn the_payoff_beyond_the_tolerance_grows_without_a_jump() {
        let block = Block::new(0.1, BaselineFirst, 0.04);
        let bet = |scale| {
            let estimates = Estimates {
                scale,
                ..Estimates::default()
            };
            Bet::new(&block, estimates)
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
