//! The wealth of the bettors of `rules`, who together start with one unit of money.
//!
//! A bettor's wealth is a product with one factor for each bet. Over many bets the product would
//! overflow or underflow. So after every 64 bets there is a *settlement*. It adds the logarithm of
//! the product to a sum, and the product starts again from 1.

use crate::rules::BETTORS;

/// Number of bets between two settlements; their product cannot overflow or underflow.
const BETS_PER_SETTLEMENT: u32 = 64;

type PerBettor = [f64; BETTORS.len()];

/// The wealth of each bettor: its wealth at the last settlement times its product since then.
#[derive(Clone, Debug)]
pub struct Wealth {
    /// ln of each bettor's wealth at the last settlement.
    settled_ln: PerBettor,
    /// Each bettor's wealth at the last settlement; 0 if it is below the smallest float.
    settled: PerBettor,
    /// Each bettor's product of the bets since the last settlement.
    products: PerBettor,
    bets_since_settlement: u32,
}

impl Wealth {
    pub fn new() -> Self {
        Self {
            settled_ln: BETTORS.map(|bettor| bettor.weight.ln()),
            settled: BETTORS.map(|bettor| bettor.weight),
            products: [1.0; BETTORS.len()],
            bets_since_settlement: 0,
        }
    }

    /// Adds a bet. Each bettor's wealth is multiplied by 1 + clip(slope·payoff, ±cap), with its own
    /// slope and cap. `payoff`, from −1 to 1, is the result of the block.
    pub fn bet(&mut self, payoff: f64) {
        for (product, bettor) in self.products.iter_mut().zip(BETTORS) {
            *product *= 1.0 + (bettor.slope * payoff).clamp(-bettor.cap, bettor.cap);
        }
        self.settle_if_due();
    }

    /// Adds a bet and returns whether the wealth has reached the threshold.
    ///
    /// Wealth above the threshold is useless. So the payoff is clamped to [−p, p]. A win with the
    /// payoff p reaches the threshold exactly.
    ///
    /// The bet stays fair, because p depends only on the wealth before the block. The clamp never
    /// delays the threshold (docs/methods/interval.md, "Interval"). Each threshold needs a wealth
    /// of its own.
    pub fn bet_towards(&mut self, payoff: f64, threshold: f64) -> bool {
        // A win above p reaches the threshold anyway, so only a loss is clamped.
        if payoff < 0.0 {
            self.bet(-self.payoff_that_reaches(threshold, -payoff));
        } else {
            self.bet(payoff);
        }
        self.total() >= threshold
    }

    /// The payoff with which a win reaches the threshold exactly, but at most `max_payoff`.
    fn payoff_that_reaches(&self, threshold: f64, max_payoff: f64) -> f64 {
        let mut wealths = [0.0; BETTORS.len()];
        let factors = self.settled.iter().zip(&self.products);
        for (wealth, (settled, product)) in wealths.iter_mut().zip(factors) {
            *wealth = settled * product;
        }
        let missing = threshold - wealths.iter().sum::<f64>();
        let bettors = || wealths.iter().zip(BETTORS);
        let gains =
            bettors().map(|(wealth, bettor)| wealth * (bettor.slope * max_payoff).min(bettor.cap));
        if gains.sum::<f64>() <= missing {
            return max_payoff;
        }
        // A win of p gains G(p) = Σ wealth·min(slope·p, cap). Newton's method solves G(p) = missing
        // from p = 0. G is concave and piecewise linear, so one step more than there are bettors
        // suffices.
        let mut payoff = 0.0;
        for _ in 0..=BETTORS.len() {
            let (mut gain_per_payoff, mut gain_of_capped) = (0.0, 0.0);
            for (wealth, bettor) in bettors() {
                if bettor.slope * payoff < bettor.cap {
                    gain_per_payoff += wealth * bettor.slope;
                } else {
                    gain_of_capped += wealth * bettor.cap;
                }
            }
            let next = (missing - gain_of_capped) / gain_per_payoff;
            if next.is_nan() || next <= payoff {
                break;
            }
            payoff = next;
        }
        payoff.min(max_payoff)
    }

    /// Adds a bet on two pairs of a block. Its stake is the mean of the stakes for their payoffs.
    pub fn bet_on_both(&mut self, first: f64, second: f64) {
        for (product, bettor) in self.products.iter_mut().zip(BETTORS) {
            let stake = |payoff: f64| (bettor.slope * payoff).clamp(-bettor.cap, bettor.cap);
            *product *= 1.0 + 0.5 * (stake(first) + stake(second));
        }
        self.settle_if_due();
    }

    /// The wealth of all bettors together. A bettor's wealth below the smallest float counts as 0.
    pub fn total(&self) -> f64 {
        let factors = self.settled.iter().zip(&self.products);
        factors.map(|(settled, product)| settled * product).sum()
    }

    /// The logarithm of the wealth of all bettors together, without overflow or underflow.
    pub fn ln(&self) -> f64 {
        let mut logs = self.settled_ln;
        for (log, product) in logs.iter_mut().zip(self.products) {
            *log += product.ln();
        }
        ln_sum_exp(&logs)
    }

    fn settle_if_due(&mut self) {
        self.bets_since_settlement += 1;
        if self.bets_since_settlement < BETS_PER_SETTLEMENT {
            return;
        }
        for index in 0..BETTORS.len() {
            self.settled_ln[index] += self.products[index].ln();
            self.settled[index] = self.settled_ln[index].exp();
        }
        self.products = [1.0; BETTORS.len()];
        self.bets_since_settlement = 0;
    }
}

/// The logarithm of the sum of e^x over all x, without overflow.
pub fn ln_sum_exp(logs: &[f64]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return largest;
    }
    let sum: f64 = logs.iter().map(|log| (log - largest).exp()).sum();
    largest + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_won_bets_make_almost_fiftyfold_wealth() {
        let mut wealth = Wealth::new();
        for _ in 0..7 {
            wealth.bet(1.0);
        }
        let by_hand = 0.015 * 1.0075_f64.powi(7)
            + 0.025 * 1.031_25_f64.powi(7)
            + 0.05 * 1.15_f64.powi(7)
            + 0.32 * 1.425_f64.powi(7)
            + 0.34 * 1.76_f64.powi(7)
            + 0.25 * 1.95_f64.powi(7);
        assert!((wealth.total() - by_hand).abs() < 1e-12);
        assert!((wealth.ln() - by_hand.ln()).abs() < 1e-12);
        assert!((by_hand - 48.6).abs() < 0.1);
    }

    #[test]
    fn wealth_recovers_from_far_below_the_smallest_float() {
        let mut wealth = Wealth::new();
        for _ in 0..100_000 {
            wealth.bet(-0.5);
        }
        for _ in 0..100_000 {
            wealth.bet(0.5);
        }
        let logs = BETTORS.map(|bettor| {
            let stake = (0.5 * bettor.slope).min(bettor.cap);
            bettor.weight.ln() + 100_000.0 * ((1.0 - stake) * (1.0 + stake)).ln()
        });
        assert!((wealth.ln() / ln_sum_exp(&logs) - 1.0).abs() < 1e-9);
        assert!(wealth.total() >= 0.0);
    }

    #[test]
    fn the_logarithm_of_immense_wealth_is_exact() {
        let mut wealth = Wealth::new();
        for _ in 0..10_000 {
            wealth.bet(1.0);
        }
        let by_hand = 10_000.0 * 1.95_f64.ln() + 0.25_f64.ln();
        assert!((wealth.ln() - by_hand).abs() < 1e-6);
        assert!(wealth.total() > 1e300);
    }

    #[test]
    fn a_loss_near_the_threshold_costs_only_the_amount_missing_for_a_win() {
        let threshold = 40.0;
        let mut wealth = Wealth::new();
        for _ in 0..6 {
            assert!(!wealth.bet_towards(1.0, threshold));
        }
        let before = wealth.total();
        let mut winner = wealth.clone();
        let mut unclamped = wealth.clone();
        assert!(winner.bet_towards(1.0, threshold));
        assert!(!wealth.bet_towards(-1.0, threshold));
        unclamped.bet(-1.0);
        // The bet is fair: a win would have gained the same amount.
        assert!((before - wealth.total() - (threshold - before)).abs() < 1e-9);
        assert!(unclamped.total() < wealth.total());
    }

    #[test]
    fn a_bet_on_two_pairs_that_agree_is_a_bet_on_one() {
        let (mut single, mut both) = (Wealth::new(), Wealth::new());
        for payoff in [0.3, -0.8, 1.0] {
            single.bet(payoff);
            both.bet_on_both(payoff, payoff);
        }
        assert!((single.total() - both.total()).abs() < 1e-12);
    }
}
