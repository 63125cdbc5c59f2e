//! P(the candidate is slower in a block): a beta-binomial confidence sequence.
//!
//! The wealth at p is the beta(½, ½) mixture of likelihood ratios against p, a martingale if the
//! chance of "slower" in a block that is not a tie is p given the past (Robbins 1970; Howard et al.
//! 2021, the two-sided beta-binomial mixture).

use crate::block::Block;
use crate::search::last_that_holds;

const PRIOR: f64 = 0.5;

/// Number of blocks in which the candidate was slower, and the evidence of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowerCount {
    /// Blocks in which it was slower.
    pub slower: usize,
    /// Blocks that were no tie; ties are left out.
    pub decided: usize,
    /// The running interval; if it is empty, the interval at the stop.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl SlowerCount {
    /// Counts the signs of the differences and keeps the confidence sequence at `level`.
    #[must_use]
    pub fn of(blocks: &[Block], level: f64) -> Self {
        let threshold = -level.ln();
        let mut mixture = Mixture::default();
        let (mut low, mut high) = (0.0, 1.0);
        for block in blocks {
            let difference = block.difference;
            if difference.is_nan() || difference == 0.0 || difference.abs() < block.tolerance {
                continue;
            }
            mixture.add(difference > 0.0);
            let share = mixture.share();
            let excludes = |p: f64| mixture.ln_wealth(p) >= threshold;
            if low < share && excludes(low) {
                low = last_that_holds(low, share, excludes);
            }
            if high > share && excludes(high) {
                high = last_that_holds(high, share, excludes);
            }
        }
        if low > high {
            (low, high) = mixture.interval(threshold);
        }
        Self {
            slower: mixture.slower,
            decided: mixture.decided,
            low,
            high,
        }
    }
}

/// The mixture's predictive likelihood of the observations.
#[derive(Clone, Copy, Debug, Default)]
struct Mixture {
    slower: usize,
    decided: usize,
    ln_likelihood: f64,
}

impl Mixture {
    fn add(&mut self, slower: bool) {
        let seen = if slower {
            self.slower
        } else {
            self.decided - self.slower
        };
        let chance = (seen as f64 + PRIOR) / (self.decided as f64 + 2.0 * PRIOR);
        self.ln_likelihood += chance.ln();
        self.decided += 1;
        self.slower += usize::from(slower);
    }

    fn share(&self) -> f64 {
        self.slower as f64 / self.decided as f64
    }

    fn ln_wealth(&self, p: f64) -> f64 {
        let slower = self.slower as f64;
        let faster = (self.decided - self.slower) as f64;
        self.ln_likelihood - times_ln(slower, p) - times_ln(faster, 1.0 - p)
    }

    fn interval(&self, threshold: f64) -> (f64, f64) {
        let excludes = |p: f64| self.ln_wealth(p) >= threshold;
        let share = self.share();
        let bound = |end: f64| {
            if excludes(end) {
                last_that_holds(end, share, excludes)
            } else {
                end
            }
        };
        (bound(0.0), bound(1.0))
    }
}

/// count·ln(p); 0 for a count of 0.
fn times_ln(count: f64, p: f64) -> f64 {
    if count > 0.0 { count * p.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjustment::NO_READINGS;
    use crate::block::Order;

    fn count(differences: &[f64], level: f64) -> SlowerCount {
        let blocks: Vec<Block> = differences
            .iter()
            .map(|&difference| Block {
                difference,
                order: Order::BaselineFirst,
                tolerance: 0.01,
                readings: NO_READINGS,
            })
            .collect();
        SlowerCount::of(&blocks, level)
    }

    #[test]
    fn ties_are_left_out() {
        let counted = count(&[1.0, 0.0, 0.001, f64::NAN, -1.0, f64::INFINITY], 0.05);
        assert_eq!((counted.slower, counted.decided), (2, 3));
    }

    #[test]
    fn nothing_says_nothing() {
        let counted = count(&[], 0.05);
        assert!(counted.low <= 0.0 && counted.high >= 1.0);
    }

    #[test]
    fn always_slower_excludes_what_the_mixture_says_by_hand() {
        // Γ(n + ½)/(Γ(½)·n!) for n = 4: 35/128; excluded where that is at least 20·p⁴.
        let counted = count(&[1.0; 4], 0.05);
        let by_hand = (35.0 / 128.0 / 20.0_f64).powf(0.25);
        assert!((counted.low - by_hand).abs() < 1e-12, "{counted:?}");
        assert!(counted.high >= 1.0);
    }

    #[test]
    fn a_probability_that_changes_leaves_the_interval_at_the_stop() {
        let differences: Vec<f64> = (0..400).map(|i| if i < 200 { 1.0 } else { -1.0 }).collect();
        let counted = count(&differences, 0.05);
        assert!(counted.low < 0.5 && 0.5 < counted.high, "{counted:?}");
    }
}
