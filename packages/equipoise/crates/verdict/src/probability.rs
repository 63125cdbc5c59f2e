//! A confidence sequence for the probability that the candidate is slower in a block.
//!
//! A bettor bets against each probability p. The wealth is the likelihood of the results under a
//! beta(½, ½) mixture of all probabilities, over their likelihood under p. If p is the true
//! probability, the bet makes no money on average (Robbins 1970; Howard et al. 2021).

use crate::block::Block;
use crate::search::last_that_holds;

/// Parameter of the beta mixture: this many results "slower", and as many results "faster", are
/// assumed before the first block.
const PRIOR_COUNT: f64 = 0.5;

/// Number of blocks in which the candidate was slower, and the interval of the probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowerCount {
    /// Blocks in which the candidate was slower.
    pub slower: usize,
    /// Blocks without a tie.
    pub decided: usize,
    /// Lower end of the running interval or, if this interval is empty, of the interval at the stop.
    pub low: f64,
    /// Upper end of the same interval.
    pub high: f64,
}

impl SlowerCount {
    /// Counts the signs of the differences and computes the confidence sequence at `level`.
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
            let slower_share = mixture.slower_share();
            let excludes = |p: f64| mixture.ln_wealth(p) >= threshold;
            if low < slower_share && excludes(low) {
                low = last_that_holds(low, slower_share, excludes);
            }
            if high > slower_share && excludes(high) {
                high = last_that_holds(high, slower_share, excludes);
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

/// The results so far, and their likelihood under the mixture.
#[derive(Clone, Copy, Debug, Default)]
struct Mixture {
    slower: usize,
    decided: usize,
    ln_likelihood: f64,
}

impl Mixture {
    fn add(&mut self, is_slower: bool) {
        let same_results = if is_slower {
            self.slower
        } else {
            self.decided - self.slower
        };
        let chance =
            (same_results as f64 + PRIOR_COUNT) / (self.decided as f64 + 2.0 * PRIOR_COUNT);
        self.ln_likelihood += chance.ln();
        self.decided += 1;
        self.slower += usize::from(is_slower);
    }

    fn slower_share(&self) -> f64 {
        self.slower as f64 / self.decided as f64
    }

    fn ln_wealth(&self, p: f64) -> f64 {
        let slower = self.slower as f64;
        let faster = (self.decided - self.slower) as f64;
        self.ln_likelihood - times_ln(slower, p) - times_ln(faster, 1.0 - p)
    }

    fn interval(&self, threshold: f64) -> (f64, f64) {
        let excludes = |p: f64| self.ln_wealth(p) >= threshold;
        let slower_share = self.slower_share();
        let interval_end = |end: f64| {
            if excludes(end) {
                last_that_holds(end, slower_share, excludes)
            } else {
                end
            }
        };
        (interval_end(0.0), interval_end(1.0))
    }
}

/// count·ln(p); 0 for a count of 0.
fn times_ln(count: f64, p: f64) -> f64 {
    if count > 0.0 { count * p.ln() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Order;

    fn count(differences: &[f64], level: f64) -> SlowerCount {
        let blocks: Vec<Block> = differences
            .iter()
            .map(|&difference| Block::new(difference, Order::BaselineFirst, 0.01))
            .collect();
        SlowerCount::of(&blocks, level)
    }

    #[test]
    fn ties_are_left_out() {
        let counted = count(&[1.0, 0.0, 0.001, f64::NAN, -1.0, f64::INFINITY], 0.05);
        assert_eq!((counted.slower, counted.decided), (2, 3));
    }

    #[test]
    fn no_probability_is_excluded_without_blocks() {
        let counted = count(&[], 0.05);
        assert!(counted.low <= 0.0 && counted.high >= 1.0);
    }

    #[test]
    fn the_lower_end_for_a_candidate_that_is_always_slower_is_that_computed_by_hand() {
        // Γ(n + ½)/(Γ(½)·n!) for n = 4: 35/128; excluded where that is at least 20·p⁴.
        let counted = count(&[1.0; 4], 0.05);
        let by_hand = (35.0 / 128.0 / 20.0_f64).powf(0.25);
        assert!((counted.low - by_hand).abs() < 1e-12, "{counted:?}");
        assert!(counted.high >= 1.0);
    }

    #[test]
    fn the_interval_at_the_stop_is_reported_if_the_probability_has_changed() {
        let differences: Vec<f64> = (0..400).map(|i| if i < 200 { 1.0 } else { -1.0 }).collect();
        let counted = count(&differences, 0.05);
        assert!(counted.low < 0.5 && 0.5 < counted.high, "{counted:?}");
    }
}
