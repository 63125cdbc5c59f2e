//! The fraction of a gap that an intervention explains (docs/methods/fraction.md).
//!
//! A block holds four conditions: A, B, and both with the intervention, `A_w` and `B_w`. The
//! fraction f is the part of the gap between A and B that the intervention removes. If it is f,
//! then exchanging A with B and `A_w` with `B_w` at once only flips the sign of
//!
//! ```text
//! z(f) = (B_w − A_w) − (1 − f)(B − A)
//! ```
//!
//! and the random order of the block makes that sign a fair coin, given the past.

use crate::adjustment::NO_READINGS;
use crate::bet::Bet;
use crate::block::{Block, Order};
use crate::past::{Learnt, learnt_scale};
use crate::wealth::Wealth;

/// Steps into which a step between two neighbours is divided to find the end of a set.
const ZOOM: usize = 100;
/// Divisions: the end of a set is known to a hundredth of a hundredth of a step.
const ZOOMS: usize = 2;

/// An interval of fractions; an end is `None` if it is beyond the last fraction tried.
pub type Piece = (Option<f64>, Option<f64>);

/// The gaps of one block: candidate minus baseline, in log units or in the metric's unit.
#[derive(Clone, Copy, Debug)]
struct Gap {
    without: f64,
    with: f64,
}

impl Gap {
    /// z(f).
    fn remainder(self, fraction: f64) -> f64 {
        // An infinite gap leaves nothing if all of it is removed.
        let kept = 1.0 - fraction;
        let left = if kept == 0.0 {
            0.0
        } else {
            kept * self.without
        };
        self.with - left
    }

    fn is_finite(self) -> bool {
        self.without.is_finite() && self.with.is_finite()
    }
}

/// One fraction and the bets against it; an excluded fraction never comes back.
#[derive(Clone, Debug)]
struct Candidate {
    fraction: f64,
    remainders: Vec<f64>,
    above: Wealth,
    below: Wealth,
    excluded: bool,
}

impl Candidate {
    fn new(fraction: f64) -> Self {
        Self {
            fraction,
            remainders: Vec::new(),
            above: Wealth::new(),
            below: Wealth::new(),
            excluded: false,
        }
    }

    fn push(&mut self, gap: Gap, threshold: f64, scratch: &mut Vec<f64>) {
        if self.excluded {
            return;
        }
        let remainder = gap.remainder(self.fraction);
        let block = Block {
            difference: remainder,
            order: Order::BaselineFirst,
            tolerance: 0.0,
            readings: NO_READINGS,
        };
        let learnt = Learnt {
            scale: learnt_scale(&self.remainders, scratch),
            slot: 0.0,
            ..Learnt::default()
        };
        let payoff = Bet::new(&block, learnt).payoff(0.0);
        let above = self.above.bet_towards(payoff, threshold);
        let below = self.below.bet_towards(-payoff, threshold);
        if gap.is_finite() {
            self.remainders.push(remainder);
        }
        self.excluded = above || below;
    }
}

/// The blocks of one intervention, and the bets against each fraction.
///
/// The confidence set is `{f : max over n of E±_n(f) < 2/level}`. It need not be one interval: if
/// the gap is small compared with its noise, z(f) rises in some blocks and falls in others.
#[derive(Clone, Debug)]
pub struct FractionSequence {
    threshold: f64,
    gaps: Vec<Gap>,
    candidates: Vec<Candidate>,
    scratch: Vec<f64>,
}

impl FractionSequence {
    /// A sequence whose confidence sets all contain the true fraction, except with a chance of
    /// `level`.
    #[must_use]
    pub fn new(level: f64) -> Self {
        let candidates = grid().into_iter();
        Self {
            threshold: 2.0 / level,
            gaps: Vec::new(),
            candidates: candidates.map(Candidate::new).collect(),
            scratch: Vec::new(),
        }
    }

    /// Adds the gaps of the next block: infinite if one of a pair timed out, NaN if both did.
    pub fn push(&mut self, without: f64, with: f64) {
        let gap = Gap { without, with };
        self.gaps.push(gap);
        for candidate in &mut self.candidates {
            candidate.push(gap, self.threshold, &mut self.scratch);
        }
    }

    /// One minus the median gap with the intervention over the median gap without it.
    #[must_use]
    pub fn estimate(&self) -> Option<f64> {
        let known = || {
            let gaps = self.gaps.iter();
            gaps.filter(|gap| !gap.without.is_nan() && !gap.with.is_nan())
        };
        let without = finite_median(known().map(|gap| gap.without).collect())?;
        let with = finite_median(known().map(|gap| gap.with).collect())?;
        (without != 0.0).then(|| 1.0 - with / without)
    }

    /// The confidence set, its ends rounded outwards to fractions that are tried: quick.
    #[must_use]
    pub fn rounded_set(&self) -> Vec<Piece> {
        let rounded = pieces(&self.candidates);
        if rounded.is_empty() {
            self.narrow_set()
        } else {
            rounded
        }
    }

    /// The confidence set, its ends as they are.
    #[must_use]
    pub fn exact_set(&self) -> Vec<Piece> {
        let rounded = pieces(&self.candidates);
        if rounded.is_empty() {
            return self.narrow_set();
        }
        let sharpened = |(low, high): Piece| {
            let place = |end: f64| self.candidates.partition_point(|one| one.fraction < end);
            (
                low.map(|low| self.edge(low, self.candidates[place(low) + 1].fraction)),
                high.map(|high| self.edge(high, self.candidates[place(high) - 1].fraction)),
            )
        };
        rounded.into_iter().map(sharpened).collect()
    }

    /// Whether a fraction is in the confidence set.
    #[must_use]
    pub fn fits(&self, fraction: f64) -> bool {
        !self.replayed(&[fraction])[0].excluded
    }

    fn replayed(&self, fractions: &[f64]) -> Vec<Candidate> {
        let mut scratch = Vec::new();
        let replay = |&fraction: &f64| {
            let mut candidate = Candidate::new(fraction);
            for &gap in &self.gaps {
                candidate.push(gap, self.threshold, &mut scratch);
            }
            candidate
        };
        fractions.iter().map(replay).collect()
    }

    /// A set between two fractions tried, because the gap is very large compared with its
    /// noise. It is looked for around the estimate.
    fn narrow_set(&self) -> Vec<Piece> {
        let Some(estimate) = self.estimate() else {
            return Vec::new();
        };
        let place = self
            .candidates
            .partition_point(|one| one.fraction < estimate);
        if place == 0 || place == self.candidates.len() {
            return Vec::new();
        }
        let mut low = self.candidates[place - 1].fraction;
        let mut high = self.candidates[place].fraction;
        for _ in 0..ZOOMS {
            let fractions = divided(low, high);
            let found = pieces(&self.replayed(&fractions));
            if !found.is_empty() {
                return found;
            }
            let nearest = fractions.partition_point(|&fraction| fraction < estimate);
            let nearest = nearest.clamp(1, ZOOM);
            (low, high) = (fractions[nearest - 1], fractions[nearest]);
        }
        Vec::new()
    }

    /// The last fraction outside the set, on the way from a fraction outside to a fraction inside.
    fn edge(&self, outside: f64, inside: f64) -> f64 {
        let (mut outside, mut inside) = (outside, inside);
        for _ in 0..ZOOMS {
            let fractions = divided(outside, inside);
            let candidates = self.replayed(&fractions);
            let first = candidates.iter().position(|one| !one.excluded);
            let first = first.unwrap_or(ZOOM).max(1);
            (outside, inside) = (fractions[first - 1], fractions[first]);
        }
        outside
    }
}

/// The fractions that are tried: dense where a fraction can well be. The limits of a verdict on
/// a cause are among them, so that they are judged exactly.
fn grid() -> Vec<f64> {
    let coarse_below = (-300..-100).step_by(10);
    let fine = (-100..200).step_by(2);
    let coarse_above = (200..=400).step_by(10);
    let hundredths = coarse_below.chain(fine).chain(coarse_above);
    hundredths
        .map(|hundredth| f64::from(hundredth) / 100.0)
        .collect()
}

fn divided(from: f64, to: f64) -> Vec<f64> {
    let step = (to - from) / ZOOM as f64;
    let inner = (0..ZOOM).map(|index| index as f64 * step + from);
    inner.chain([to]).collect()
}

/// The ranges of fractions that fit, each between the nearest fractions outside.
fn pieces(candidates: &[Candidate]) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut last_outside = None;
    for run in candidates.chunk_by(|one, next| one.excluded == next.excluded) {
        match (run, found.last_mut()) {
            ([first, .., last] | [first @ last], previous) if first.excluded => {
                if let Some((_, high)) = previous {
                    *high = Some(first.fraction);
                }
                last_outside = Some(last.fraction);
            }
            _ => found.push((last_outside, None)),
        }
    }
    found
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
        for &(without, with) in gaps {
            sequence.push(without, with);
        }
        sequence
    }

    #[test]
    fn no_block_excludes_nothing() {
        let nothing = sequence(&[]);
        assert_eq!(nothing.estimate(), None);
        assert_eq!(nothing.rounded_set(), vec![(None, None)]);
        assert_eq!(nothing.exact_set(), vec![(None, None)]);
    }

    #[test]
    fn the_set_closes_around_the_fraction_and_its_ends_lie_outside() {
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
    fn a_set_between_two_fractions_tried_is_found() {
        let gaps: Vec<(f64, f64)> = (0..40_u32)
            .map(|index| (1.0, 0.026_6 + f64::from((index * 37) % 23) / 1e6))
            .collect();
        let [(Some(low), Some(high))] = sequence(&gaps).exact_set()[..] else {
            panic!("there is one piece");
        };
        assert!(low < 0.973_4 && 0.973_3 < high && high - low < 1e-3);
    }

    #[test]
    fn a_candidate_that_always_times_out_leaves_no_fraction() {
        let timeouts = sequence(&[(f64::INFINITY, 0.001); 30]);
        assert_eq!(timeouts.estimate(), None);
        assert!(timeouts.exact_set().is_empty());
    }

    #[test]
    fn a_pair_that_timed_out_is_no_evidence() {
        let ties = sequence(&[(f64::NAN, f64::NAN); 30]);
        assert_eq!(ties.rounded_set(), vec![(None, None)]);
    }
}
