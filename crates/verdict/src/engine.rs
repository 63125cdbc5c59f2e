//! The rules of the bets, by version: a campaign is judged for ever by the engine that began it.
//!
//! An engine is a table of bettors and two rules. What is common to all engines, and why the bets
//! are fair, stands in `bet`, `past` and `wealth`.

/// One bettor: stakes a part of its money on the side that the block's difference speaks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bettor {
    /// Part of the starting capital; the weights of an engine sum to 1.
    pub weight: f64,
    /// Stake per unit of payoff, before the cap.
    pub slope: f64,
    /// Largest stake; below 1, so that no bettor is ever ruined.
    pub cap: f64,
}

/// How the scale of the block differences is learnt from past blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleRule {
    /// 1.4826·MAD from the third block on; signs alone before.
    MedianDeviation,
    /// Root mean square after one and two blocks; then the standard deviation of differences
    /// Huberised at 1.5 MAD scales, widened by (1 + 1/n) for what few blocks cannot know.
    Huberised,
}

/// A version of the engine.
#[derive(Debug, PartialEq)]
pub struct Engine {
    /// The number that a ledger holds.
    pub version: u32,
    /// Scales at which a payoff, and the influence of a difference on the estimate, stop growing.
    pub(crate) clip: f64,
    /// As `clip`, for the estimate; the first engine had another constant there.
    pub(crate) clip_of_estimate: f64,
    /// How the scale is learnt.
    pub(crate) scale: ScaleRule,
    /// Those who bet.
    pub(crate) bettors: &'static [Bettor],
    /// Whether differences are adjusted for covariates that were read before the trials.
    pub(crate) adjusts: bool,
    /// Whether no more is staked than a win needs to reach the bar (`Wealth::bet_towards`).
    pub(crate) stops_at_bar: bool,
    /// Least tolerance of a block, in log units. Where times have few values, all differences can
    /// be equal but for the rounding of floats, whose sign is not a coin.
    pub(crate) rounding: f64,
    /// How a verdict follows from the intervals.
    pub rules: VerdictRules,
}

/// How a verdict follows from the intervals, the costs and the number of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "rules that are independent of each other"
)]
pub struct VerdictRules {
    /// The interval that must lie within the margin for `equivalent` has this multiple of the
    /// level: 2 where each side stands for itself (docs/statistics.md#the-verdicts-interval).
    pub equivalence_levels: f64,
    /// Blocks before `equivalent` can be said.
    pub equivalence_blocks: usize,
    /// Whether a ratio of means beyond the margin forbids `equivalent`.
    pub means_veto_equivalence: bool,
    /// Whether `mixed` needs the ratio of means to contradict also without its most extreme block.
    pub mixed_without_extreme_block: bool,
    /// Whether the resolution of the clock is set against the costs of past blocks, not against
    /// the smaller cost of the block that is bet on.
    pub resolution_from_past: bool,
    /// Whether the interval at the stop is shown in place of a running one that is much narrower
    /// or has lost the estimate.
    pub checks_running_interval: bool,
    /// Whether the verdict of a campaign over layouts is about layouts in general, not about those
    /// that were drawn.
    pub across_layouts: bool,
}

/// At most this many bettors in an engine.
pub(crate) const MOST_BETTORS: usize = 6;

const fn bettor(weight: f64, slope: f64, cap: f64) -> Bettor {
    Bettor { weight, slope, cap }
}

/// Engine of the first release: four fixed stakes.
pub static FIRST: Engine = Engine {
    version: 1,
    clip: 1.25,
    clip_of_estimate: 1.5,
    scale: ScaleRule::MedianDeviation,
    adjusts: false,
    stops_at_bar: false,
    rounding: 0.0,
    bettors: &[
        bettor(0.25, 0.1, 0.1),
        bettor(0.25, 0.3, 0.3),
        bettor(0.25, 0.6, 0.6),
        bettor(0.25, 0.9, 0.9),
    ],
    rules: VerdictRules {
        equivalence_levels: 1.0,
        equivalence_blocks: 0,
        means_veto_equivalence: false,
        mixed_without_extreme_block: false,
        resolution_from_past: false,
        checks_running_interval: false,
        across_layouts: false,
    },
};

/// Engine of the second release. A bettor's stake is the piecewise linear form of the likelihood
/// ratio tanh(δx/σ²) against one effect δ: 0.006, 0.025, 0.12, 0.34, 0.74 and 1.8
/// scales. Chosen by simulation (docs/decisions.md, benchmarks/validity).
pub static SECOND: Engine = Engine {
    version: 2,
    clip: 1.25,
    clip_of_estimate: 1.25,
    scale: ScaleRule::Huberised,
    adjusts: true,
    stops_at_bar: true,
    // The logarithm of any float is rounded by at most 6e-14, and θ is as well.
    rounding: 1e-12,
    bettors: &[
        bettor(0.015, 0.0075, 0.0075),
        bettor(0.025, 0.031_25, 0.031_25),
        bettor(0.05, 0.15, 0.15),
        bettor(0.32, 0.425, 0.425),
        bettor(0.34, 0.925, 0.76),
        bettor(0.25, 2.25, 0.95),
    ],
    rules: VerdictRules {
        equivalence_levels: 2.0,
        equivalence_blocks: 30,
        means_veto_equivalence: true,
        mixed_without_extreme_block: true,
        resolution_from_past: true,
        checks_running_interval: true,
        across_layouts: true,
    },
};

/// Every engine, the newest last.
pub static ENGINES: [&Engine; 2] = [&FIRST, &SECOND];

impl Engine {
    /// The engine of a version; `None` if there is none.
    #[must_use]
    pub fn of_version(version: u32) -> Option<&'static Self> {
        ENGINES.into_iter().find(|engine| engine.version == version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_sum_to_one_and_nobody_can_be_ruined() {
        for engine in ENGINES {
            let weights: f64 = engine.bettors.iter().map(|bettor| bettor.weight).sum();
            assert!((weights - 1.0).abs() < 1e-12, "engine {}", engine.version);
            assert!(engine.bettors.len() <= MOST_BETTORS);
            for bettor in engine.bettors {
                assert!(bettor.cap < 1.0 && bettor.cap <= bettor.slope);
            }
        }
    }

    #[test]
    fn an_engine_is_found_by_its_version() {
        assert_eq!(Engine::of_version(1), Some(&FIRST));
        assert_eq!(Engine::of_version(2), Some(&SECOND));
        assert_eq!(Engine::of_version(3), None);
    }
}
