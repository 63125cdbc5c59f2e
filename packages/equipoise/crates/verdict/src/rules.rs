//! The constants of the bets, and of the verdict that follows from them.
//!
//! They were chosen by simulation (docs/decisions/statistics.md, benchmarks/validity). The modules
//! `bet`, `past` and `wealth` explain why the bets are fair.

/// A bettor, which stakes a part of its wealth in each block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bettor {
    /// Wealth before the first block. The weights of all bettors sum to 1.
    pub(crate) weight: f64,
    /// Stake for a payoff of 1, as a part of the bettor's wealth, before the cap.
    pub(crate) slope: f64,
    /// Largest stake. It is below 1, so that no bettor can lose all its wealth.
    pub(crate) cap: f64,
}

const fn bettor(weight: f64, slope: f64, cap: f64) -> Bettor {
    Bettor { weight, slope, cap }
}

/// The bettors. Let a difference x have the standard deviation σ. The best stake against an effect
/// δ is then tanh(δx/σ²). Each bettor approximates this stake by straight lines, for one δ: 0.006,
/// 0.025, 0.12, 0.34, 0.74 and 1.8 σ.
pub(crate) const BETTORS: [Bettor; 6] = [
    bettor(0.015, 0.0075, 0.0075),
    bettor(0.025, 0.031_25, 0.031_25),
    bettor(0.05, 0.15, 0.15),
    bettor(0.32, 0.425, 0.425),
    bettor(0.34, 0.925, 0.76),
    bettor(0.25, 2.25, 0.95),
];

/// Differences are clipped at this many scales (robust standard deviations), for bets and the
/// centre.
pub(crate) const CLIP_SCALES: f64 = 1.25;

/// Smallest tolerance of a block, in log units. A smaller difference may be a rounding error of
/// floats, at most 6e-14. Its sign is not a fair coin.
pub(crate) const MIN_TOLERANCE: f64 = 1e-12;

/// The interval that decides on `equivalent` has this many times the level. Each of its sides is a
/// separate test (docs/methods/verdict.md).
pub const EQUIVALENCE_LEVELS: f64 = 2.0;

/// Smallest number of blocks for the verdict `equivalent`.
pub const EQUIVALENCE_BLOCKS: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_sum_to_one_and_no_bettor_can_lose_all_its_money() {
        let weights: f64 = BETTORS.iter().map(|bettor| bettor.weight).sum();
        assert!((weights - 1.0).abs() < 1e-12);
        for bettor in BETTORS {
            assert!(bettor.cap < 1.0 && bettor.cap <= bettor.slope);
        }
    }
}
