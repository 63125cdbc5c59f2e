//! The constants of the bets, and of the verdict that follows from them.
//!
//! They were chosen by simulation (docs/decisions/statistics.md, benchmarks/validity). Why the bets are fair
//! are in `bet`, `past` and `wealth`.

/// One bettor: stakes a part of its money on the side that the block's difference supports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bettor {
    /// Part of the starting capital; all weights sum to 1.
    pub(crate) weight: f64,
    /// Stake per unit of payoff, before the cap.
    pub(crate) slope: f64,
    /// Largest stake; below 1, so that no bettor is ever ruined.
    pub(crate) cap: f64,
}

const fn bettor(weight: f64, slope: f64, cap: f64) -> Bettor {
    Bettor { weight, slope, cap }
}

/// The bettors. A bettor's stake is the piecewise linear form of the likelihood ratio tanh(δx/σ²)
/// against one effect δ: 0.006, 0.025, 0.12, 0.34, 0.74 and 1.8 scales.
pub(crate) const BETTORS: [Bettor; 6] = [
    bettor(0.015, 0.0075, 0.0075),
    bettor(0.025, 0.031_25, 0.031_25),
    bettor(0.05, 0.15, 0.15),
    bettor(0.32, 0.425, 0.425),
    bettor(0.34, 0.925, 0.76),
    bettor(0.25, 2.25, 0.95),
];

/// Scales at which a payoff, and the influence of a difference on the estimate, stop growing.
pub(crate) const CLIP: f64 = 1.25;

/// Least tolerance of a block, in log units. Where times have few values, all differences can be
/// equal but for the rounding of floats, whose sign is not a coin. The logarithm of any float is
/// rounded by at most 6e-14, and θ is as well.
pub(crate) const ROUNDING: f64 = 1e-12;

/// The interval that must be within the margin for `equivalent` has this multiple of the level:
/// each of its sides counts alone (docs/methods/verdict.md).
pub const EQUIVALENCE_LEVELS: f64 = 2.0;

/// Blocks before `equivalent` can be said.
pub const EQUIVALENCE_BLOCKS: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_sum_to_one_and_nobody_can_be_ruined() {
        let weights: f64 = BETTORS.iter().map(|bettor| bettor.weight).sum();
        assert!((weights - 1.0).abs() < 1e-12);
        for bettor in BETTORS {
            assert!(bettor.cap < 1.0 && bettor.cap <= bettor.slope);
        }
    }
}
