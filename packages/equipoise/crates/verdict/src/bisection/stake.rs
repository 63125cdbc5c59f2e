//! The bet on one block of a search for a commit (docs/methods/bisect.md).

/// Largest part of the wealth that a bet stakes.
const MAX_STAKE: f64 = 0.9;
/// Bets assume this fraction of the estimated step, in case the estimate is too large.
const STEP_FACTOR: f64 = 0.8;
/// Largest ratio of step to scale. A larger ratio would overflow, and would change no bet.
const MAX_RATIO: f64 = 8.0;
/// A difference counts only up to half of the step plus this number of scales.
const CLIP_SCALES: f64 = 1.25;

/// The bet on one block, which depends only on the blocks before it.
///
/// Let y be the difference of the log costs in the block. Let q be the chance that its pair of
/// commits contains the step. The bet multiplies the wealth by a factor e(y, q). The factor never
/// falls as y rises. `e(y, q) + e(−y, q) = 2`. So if y is symmetric around a centre of at most 0,
/// the bet makes no money on average.
#[derive(Clone, Copy, Debug)]
pub struct Stake {
    /// The step divided by the scale.
    ratio: f64,
    /// exp(−ratio²/2): the normal density at the step, over the density at 0.
    density_ratio: f64,
    scale: f64,
    margin: f64,
    tolerance: f64,
}

impl Stake {
    /// The bet on one block.
    ///
    /// `step` and the standard deviation `scale` are above 0; past blocks estimate them.
    /// Differences up to `margin` count as 0. A difference within `tolerance` of the margin is a
    /// tie.
    #[must_use]
    pub fn new(step: f64, scale: f64, margin: f64, tolerance: f64) -> Self {
        let scale = scale.max(tolerance);
        let assumed_step = STEP_FACTOR * (step - margin).max(0.5 * step);
        let ratio = (assumed_step / scale).min(MAX_RATIO);
        Self {
            ratio,
            density_ratio: (-0.5 * ratio * ratio).exp(),
            scale,
            margin,
            tolerance,
        }
    }

    /// The payoff of a difference, which is positive in the direction of the gap. A timeout has an
    /// infinite difference.
    #[must_use]
    pub fn payoff_of(&self, difference: f64) -> Payoff {
        let distance = difference - self.margin;
        let beyond = (distance.abs() - self.tolerance)
            .max(0.0)
            .copysign(distance);
        let limit = 0.5 * self.ratio + CLIP_SCALES;
        let exponent = self.ratio * (beyond / self.scale).clamp(-limit, limit);
        Payoff {
            odd_part: self.density_ratio * exponent.sinh(),
            even_part: self.density_ratio * exponent.cosh(),
        }
    }
}

/// The likelihood ratio of a block's difference, in two parts.
#[derive(Clone, Copy, Debug)]
pub struct Payoff {
    /// The odd part changes its sign with the difference.
    odd_part: f64,
    /// The even part does not.
    even_part: f64,
}

impl Payoff {
    /// The factor e(y, q) on the wealth, for the chance q, from 0 to 1.
    #[must_use]
    pub fn factor(&self, chance: f64) -> f64 {
        1.0 + MAX_STAKE * chance * self.odd_part / (chance * self.even_part + (1.0 - chance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANCES: [f64; 6] = [0.0, 1e-12, 0.01, 0.5, 0.99, 1.0];
    /// Tuples of step, scale and tolerance.
    const SIZES: [(f64, f64, f64); 5] = [
        (0.03, 0.02, 0.0),
        (1e-9, 1.0, 0.0),
        (5.0, 1e-9, 0.0),
        (0.03, 0.02, 0.01),
        (0.03, 1e-9, 0.1),
    ];

    fn differences() -> impl Iterator<Item = f64> {
        let finite = (0..=400).map(|i| f64::from(i - 200) / 500.0);
        [f64::NEG_INFINITY]
            .into_iter()
            .chain(finite)
            .chain([f64::INFINITY])
    }

    #[test]
    fn the_bet_is_fair_for_both_sides_of_the_coin() {
        for (step, scale, tolerance) in SIZES {
            let stake = Stake::new(step, scale, 0.0, tolerance);
            for y in differences() {
                for q in CHANCES {
                    let both = stake.payoff_of(y).factor(q) + stake.payoff_of(-y).factor(q);
                    assert!((both - 2.0).abs() < 1e-12, "{step} {scale} {y} {q}");
                }
            }
        }
    }

    #[test]
    fn the_factor_never_falls_as_the_difference_rises_and_is_never_0() {
        for (step, scale, tolerance) in SIZES {
            let stake = Stake::new(step, scale, 0.003, tolerance);
            for q in CHANCES {
                let factor = |y| stake.payoff_of(y).factor(q);
                let factors: Vec<f64> = differences().map(factor).collect();
                assert!(factors.windows(2).all(|pair| pair[0] <= pair[1] + 1e-15));
                assert!(factors.iter().all(|e| (0.099_999..=1.900_001).contains(e)));
            }
        }
    }

    #[test]
    fn the_factor_is_that_of_the_documented_formula() {
        // By hand: r = 0.8·0.027/0.02, y = 0.037, u = r·1.79 (the clip), q = 0.4.
        let ratio: f64 = 0.8 * 0.027 / 0.02;
        let exponent = ratio * (0.037_f64 / 0.02).min(0.5 * ratio + 1.25);
        let k = 0.4 * (-0.5 * ratio * ratio).exp();
        let by_hand = 1.0 + 0.9 * k * exponent.sinh() / (k * exponent.cosh() + 0.6);
        let stake = Stake::new(0.03, 0.02, 0.003, 0.0);
        assert!((stake.payoff_of(0.04).factor(0.4) - by_hand).abs() < 1e-14);
    }

    #[test]
    fn differences_within_the_tolerance_change_no_wealth() {
        let stake = Stake::new(0.03, 0.02, 0.01, 0.005);
        for y in [0.0051, 0.01, 0.0149] {
            assert!((stake.payoff_of(y).factor(0.5) - 1.0).abs() < 1e-15);
        }
        assert!(stake.payoff_of(0.016).factor(0.5) > 1.0);
    }
}
