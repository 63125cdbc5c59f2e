//! The fraction of a gap that an intervention explains (docs/methods/fraction.md).
//!
//! A block has four conditions: A, B, and both with the intervention, `A_w` and `B_w`. The fraction
//! f is the part of the gap between A and B that the intervention removes. For the costs, let
//!
//! ```text
//! z(f) = (B_w − A_w) − (1 − f)(B − A)
//! ```
//!
//! If f is the true fraction, exchanging A with B and `A_w` with `B_w` only changes the sign of
//! z(f). The random order of the block makes this sign a fair coin, given the past.

use crate::bet::Bet;
use crate::block::{Block, Order};
use crate::past::{Estimates, scale_of};
use crate::wealth::Wealth;

/// To find the end of a set, the distance of two tested fractions is divided into this many parts.
const DIVISIONS: usize = 100;
/// Number of divisions. After two, the end of a set is known to 1/10,000 of that distance.
const DIVISION_ROUNDS: usize = 2;

/// An interval of fractions. An end is `None` if it is beyond the last tested fraction.
pub type FractionInterval = (Option<f64>, Option<f64>);

/// The gaps of one block: candidate minus baseline, in log units or in the metric's unit.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// Gap of the original conditions, B − A.
    original: f64,
    /// Gap of the conditions with the intervention, `B_w − A_w`.
    changed: f64,
}

impl Gap {
    /// z(f): the part of the gap that the fraction f does not explain.
    fn remainder(self, fraction: f64) -> f64 {
        // If all of an infinite gap is removed, nothing remains; 0 · ∞ would be NaN.
        let remaining_fraction = 1.0 - fraction;
        let remaining_gap = if remaining_fraction == 0.0 {
            0.0
        } else {
            remaining_fraction * self.original
        };
        self.changed - remaining_gap
    }

    fn is_finite(self) -> bool {
        self.original.is_finite() && self.changed.is_finite()
    }
}

/// A fraction and the bets against it. An excluded fraction stays excluded.
#[derive(Clone, Debug)]
struct TestedFraction {
    fraction: f64,
    /// z(f) of the past blocks, if finite.
    remainders: Vec<f64>,
    /// Wealth of the bets that z(f) is above 0.
    wealth_above: Wealth,
    /// Wealth of the bets that z(f) is below 0.
    wealth_below: Wealth,
    is_excluded: bool,
}

impl TestedFraction {
    fn new(fraction: f64) -> Self {
        Self {
            fraction,
            remainders: Vec::new(),
            wealth_above: Wealth::new(),
            wealth_below: Wealth::new(),
            is_excluded: false,
        }
    }

    fn push(&mut self, gap: Gap, threshold: f64, scratch: &mut Vec<f64>) {
        if self.is_excluded {
            return;
        }
        let remainder = gap.remainder(self.fraction);
        let block = Block::new(remainder, Order::BaselineFirst, 0.0);
        let estimates = Estimates {
            scale: scale_of(&self.remainders, scratch),
            ..Estimates::default()
        };
        let payoff = Bet::new(&block, estimates).payoff(0.0);
        let reached_above = self.wealth_above.bet_towards(payoff, threshold);
        let reached_below = self.wealth_below.bet_towards(-payoff, threshold);
        if gap.is_finite() {
            self.remainders.push(remainder);
        }
        self.is_excluded = reached_above || reached_below;
    }
}

/// The blocks of one intervention, and the bets against each fraction.
///
/// The confidence set has all fractions against which no wealth ever reached 2/level. If the gap is
/// small compared with its noise, the set may be several intervals.
#[derive(Clone, Debug)]
pub struct FractionSequence {
    threshold: f64,
    gaps: Vec<Gap>,
    /// The tested fractions, ascending.
    grid: Vec<TestedFraction>,
    scratch: Vec<f64>,
}

impl FractionSequence {
    /// An empty sequence. Its set excludes the true fraction with a chance of at most `level`.
    #[must_use]
    pub fn new(level: f64) -> Self {
        Self {
            threshold: 2.0 / level,
            gaps: Vec::new(),
            grid: grid_fractions().map(TestedFraction::new).collect(),
            scratch: Vec::new(),
        }
    }

    /// Adds the original and the changed gap of the next block. A gap is infinite if one of its two
    /// trials timed out, and NaN if both did.
    pub fn push(&mut self, original: f64, changed: f64) {
        let gap = Gap { original, changed };
        self.gaps.push(gap);
        for tested in &mut self.grid {
            tested.push(gap, self.threshold, &mut self.scratch);
        }
    }

    /// 1 − (median gap with the intervention) / (median original gap).
    #[must_use]
    pub fn estimate(&self) -> Option<f64> {
        let known = || {
            let gaps = self.gaps.iter();
            gaps.filter(|gap| !gap.original.is_nan() && !gap.changed.is_nan())
        };
        let original = finite_median(known().map(|gap| gap.original).collect())?;
        let changed = finite_median(known().map(|gap| gap.changed).collect())?;
        (original != 0.0).then(|| 1.0 - changed / original)
    }

    /// The confidence set with its ends rounded outwards to tested fractions, which is quick.
    #[must_use]
    pub fn rounded_set(&self) -> Vec<FractionInterval> {
        let rounded = remaining_intervals(&self.grid);
        if rounded.is_empty() {
            self.narrow_set()
        } else {
            rounded
        }
    }

    /// The confidence set with its exact ends.
    #[must_use]
    pub fn exact_set(&self) -> Vec<FractionInterval> {
        let rounded = remaining_intervals(&self.grid);
        if rounded.is_empty() {
            return self.narrow_set();
        }
        let exact_interval = |(low, high): FractionInterval| {
            let index = |end: f64| self.grid.partition_point(|tested| tested.fraction < end);
            (
                low.map(|low| self.exact_end(low, self.grid[index(low) + 1].fraction)),
                high.map(|high| self.exact_end(high, self.grid[index(high) - 1].fraction)),
            )
        };
        rounded.into_iter().map(exact_interval).collect()
    }

    /// Whether a fraction is in the confidence set.
    #[must_use]
    pub fn fits(&self, fraction: f64) -> bool {
        !self.replay(&[fraction])[0].is_excluded
    }

    /// The bets against some fractions, on all blocks so far.
    fn replay(&self, fractions: &[f64]) -> Vec<TestedFraction> {
        let mut scratch = Vec::new();
        let replay = |&fraction: &f64| {
            let mut tested = TestedFraction::new(fraction);
            for &gap in &self.gaps {
                tested.push(gap, self.threshold, &mut scratch);
            }
            tested
        };
        fractions.iter().map(replay).collect()
    }

    /// The confidence set, searched for around the estimate. It is for a set so narrow that it lies
    /// between two tested fractions.
    fn narrow_set(&self) -> Vec<FractionInterval> {
        let Some(estimate) = self.estimate() else {
            return Vec::new();
        };
        let index = self
            .grid
            .partition_point(|tested| tested.fraction < estimate);
        if index == 0 || index == self.grid.len() {
            return Vec::new();
        }
        let mut low = self.grid[index - 1].fraction;
        let mut high = self.grid[index].fraction;
        for _ in 0..DIVISION_ROUNDS {
            let fractions = divide(low, high);
            let intervals = remaining_intervals(&self.replay(&fractions));
            if !intervals.is_empty() {
                return intervals;
            }
            let upper = fractions.partition_point(|&fraction| fraction < estimate);
            let upper = upper.clamp(1, DIVISIONS);
            (low, high) = (fractions[upper - 1], fractions[upper]);
        }
        Vec::new()
    }

    /// The last fraction outside the set, on the way from a fraction outside to a fraction inside.
    fn exact_end(&self, outside: f64, inside: f64) -> f64 {
        let (mut outside, mut inside) = (outside, inside);
        for _ in 0..DIVISION_ROUNDS {
            let fractions = divide(outside, inside);
            let replayed = self.replay(&fractions);
            let first_inside = replayed.iter().position(|tested| !tested.is_excluded);
            let first_inside = first_inside.unwrap_or(DIVISIONS).max(1);
            (outside, inside) = (fractions[first_inside - 1], fractions[first_inside]);
        }
        outside
    }
}

/// The tested fractions, from −3 to 4, densest from −1 to 2. They contain the limits of a verdict
/// on a cause, so that these limits are tested exactly.
fn grid_fractions() -> impl Iterator<Item = f64> {
    let coarse_below = (-300..-100).step_by(10);
    let fine = (-100..200).step_by(2);
    let coarse_above = (200..=400).step_by(10);
    let hundredths = coarse_below.chain(fine).chain(coarse_above);
    hundredths.map(|hundredth| f64::from(hundredth) / 100.0)
}

fn divide(from: f64, to: f64) -> Vec<f64> {
    let step = (to - from) / DIVISIONS as f64;
    let inner = (0..DIVISIONS).map(|index| index as f64 * step + from);
    inner.chain([to]).collect()
}

/// The intervals of fractions that are not excluded, each up to the nearest excluded fractions.
fn remaining_intervals(tested_fractions: &[TestedFraction]) -> Vec<FractionInterval> {
    let mut intervals = Vec::new();
    let mut last_outside = None;
    for run in tested_fractions.chunk_by(|tested, next| tested.is_excluded == next.is_excluded) {
        match (run, intervals.last_mut()) {
            ([first, .., last] | [first @ last], previous) if first.is_excluded => {
                if let Some((_, high)) = previous {
                    *high = Some(first.fraction);
                }
                last_outside = Some(last.fraction);
            }
            _ => intervals.push((last_outside, None)),
        }
    }
    intervals
}

fn finite_median(mut values: Vec<f64>) -> Option<f64> {
    let count = values.len();
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(count / 2)?;
    let middle = if count % 2 == 1 {
        upper
    } else {
        0.5 * (values[count / 2 - 1] + upper)
    };
    middle.is_finite().then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(gaps: &[(f64, f64)]) -> FractionSequence {
        let mut sequence = FractionSequence::new(0.05);
        for &(original, changed) in gaps {
            sequence.push(original, changed);
        }
        sequence
    }

    #[test]
    fn no_fraction_is_excluded_without_blocks() {
        let empty = sequence(&[]);
        assert_eq!(empty.estimate(), None);
        assert_eq!(empty.rounded_set(), vec![(None, None)]);
        assert_eq!(empty.exact_set(), vec![(None, None)]);
    }

    #[test]
    fn the_set_contains_the_estimate_and_not_its_own_ends() {
        let noise = |index: u32| f64::from((index * 37) % 23) / 2_000.0;
        let gaps: Vec<(f64, f64)> = (0..60)
            .map(|index| (0.1 + noise(index), 0.04 + noise(index + 7)))
            .collect();
        let blocks = sequence(&gaps);
        let estimate = blocks.estimate().expect("the gap is not 0");
        let [(Some(low), Some(high))] = blocks.exact_set()[..] else {
            panic!("{:?}", blocks.exact_set());
        };
        assert!(low < estimate && estimate < high && high - low < 0.3);
        assert!(!blocks.fits(low) && !blocks.fits(high));
        assert!(blocks.fits(estimate));
        let [(Some(rounded_low), Some(rounded_high))] = blocks.rounded_set()[..] else {
            panic!("{:?}", blocks.rounded_set());
        };
        assert!(rounded_low <= low && high <= rounded_high);
    }

    #[test]
    fn a_set_between_two_tested_fractions_is_found() {
        let gaps: Vec<(f64, f64)> = (0..40_u32)
            .map(|index| (1.0, 0.026_6 + f64::from((index * 37) % 23) / 1e6))
            .collect();
        let [(Some(low), Some(high))] = sequence(&gaps).exact_set()[..] else {
            panic!("the set must be one interval");
        };
        assert!(low < 0.973_4 && 0.973_3 < high && high - low < 1e-3);
    }

    #[test]
    fn every_fraction_is_excluded_if_the_candidate_always_times_out() {
        let timeouts = sequence(&[(f64::INFINITY, 0.001); 30]);
        assert_eq!(timeouts.estimate(), None);
        assert!(timeouts.exact_set().is_empty());
    }

    #[test]
    fn blocks_in_which_both_trials_timed_out_exclude_no_fraction() {
        let ties = sequence(&[(f64::NAN, f64::NAN); 30]);
        assert_eq!(ties.rounded_set(), vec![(None, None)]);
    }
}
