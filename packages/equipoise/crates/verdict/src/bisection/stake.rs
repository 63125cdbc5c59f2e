//! The bet of a bisection: the coin's likelihood ratio if a pair contains the step with some
//! chance.

/// Largest part of the wealth that a bet stakes.
const CAP: f64 = 0.9;
/// Part of the learnt step that the bets believe in: costs 4 % if the step is right, saves more if
/// it is not.
const CAUTION: f64 = 0.8;
/// Limit of the ratio of step and scale: larger ratios change nothing, and would overflow.
const LARGEST_RATIO: f64 = 8.0;
/// Distance beyond half of the step, in scales, from which a difference carries no more evidence.
const REACH: f64 = 1.25;

/// The bet on a block, from the blocks before it.
///
/// `e(y, q) + e(−y, q) = 2`, and `e` never falls in `y`. So a coin that turns y around a centre at
/// or below 0 makes no money on average.
#[derive(Clone, Copy, Debug)]
pub struct Stake {
    ratio: f64,
    /// ln of the density at half the step over that at its foot, for both sides of the coin.
    penalty: f64,
    scale: f64,
    margin: f64,
    tolerance: f64,
}

impl Stake {
    /// The bets on one block.
    ///
    /// `step` and `scale` are above 0 and learnt from past blocks; differences up to `margin` count
    /// as 0, and a value within `tolerance` of it counts as equal.
    #[must_use]
    pub fn new(step: f64, scale: f64, margin: f64, tolerance: f64) -> Self {
        let scale = scale.max(tolerance);
        let believed = CAUTION * (step - margin).max(0.5 * step);
        let ratio = (believed / scale).min(LARGEST_RATIO);
        Self {
            ratio,
            penalty: (-0.5 * ratio * ratio).exp(),
            scale,
            margin,
            tolerance,
        }
    }

    /// The bets on a difference, in the direction of the gap; infinite for a timeout.
    #[must_use]
    pub fn on(&self, difference: f64) -> Payoff {
        let distance = difference - self.margin;
        let beyond = (distance.abs() - self.tolerance)
            .max(0.0)
            .copysign(distance);
        let reach = 0.5 * self.ratio + REACH;
        let tilt = self.ratio * (beyond / self.scale).clamp(-reach, reach);
        Payoff {
            rise: self.penalty * tilt.sinh(),
            level: self.penalty * tilt.cosh(),
        }
    }
}

/// The payoff of a block's difference, by the chance that its pair contains the step.
#[derive(Clone, Copy, Debug)]
pub struct Payoff {
    rise: f64,
    level: f64,
}

impl Payoff {
    /// The factor e(y, q) of a bet that the pair contains the step with chance q, from 0 to 1.
    #[must_use]
    pub fn factor(&self, chance: f64) -> f64 {
        1.0 + CAP * chance * self.rise / (chance * self.level + (1.0 - chance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANCES: [f64; 6] = [0.0, 1e-12, 0.01, 0.5, 0.99, 1.0];
    /// Step, scale and tolerance.
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
    fn exchanging_the_sides_of_the_coin_makes_the_bet_fair() {
        for (step, scale, tolerance) in SIZES {
            let stake = Stake::new(step, scale, 0.0, tolerance);
            for y in differences() {
                for q in CHANCES {
                    let both = stake.on(y).factor(q) + stake.on(-y).factor(q);
                    assert!((both - 2.0).abs() < 1e-12, "{step} {scale} {y} {q}");
                }
            }
        }
    }

    #[test]
    fn a_bet_never_falls_in_the_difference_and_is_never_ruined() {
        for (step, scale, tolerance) in SIZES {
            let stake = Stake::new(step, scale, 0.003, tolerance);
            for q in CHANCES {
                let factors: Vec<f64> = differences().map(|y| stake.on(y).factor(q)).collect();
                assert!(factors.windows(2).all(|pair| pair[0] <= pair[1] + 1e-15));
                assert!(factors.iter().all(|e| (0.099_999..=1.900_001).contains(e)));
            }
        }
    }

    #[test]
    fn the_formula_of_the_reference() {
        // By hand: r = 0.8·0.027/0.02, y = 0.037, u = r·1.79 (the clip), q = 0.4.
        let ratio: f64 = 0.8 * 0.027 / 0.02;
        let tilt = ratio * (0.037_f64 / 0.02).min(0.5 * ratio + 1.25);
        let k = 0.4 * (-0.5 * ratio * ratio).exp();
        let by_hand = 1.0 + 0.9 * k * tilt.sinh() / (k * tilt.cosh() + 0.6);
        let stake = Stake::new(0.03, 0.02, 0.003, 0.0);
        assert!((stake.on(0.04).factor(0.4) - by_hand).abs() < 1e-14);
    }

    #[test]
    fn what_the_clock_cannot_tell_wins_nothing() {
        let stake = Stake::new(0.03, 0.02, 0.01, 0.005);
        for y in [0.0051, 0.01, 0.0149] {
            assert!((stake.on(y).factor(0.5) - 1.0).abs() < 1e-15);
        }
        assert!(stake.on(0.016).factor(0.5) > 1.0);
    }
}
