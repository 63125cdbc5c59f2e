//! The wealth of the bettors, who share one unit of money.

use crate::rules::BETTORS;

/// Number of bets whose product neither overflows nor underflows.
const BETS_PER_CHUNK: u32 = 64;

type PerBettor = [f64; BETTORS.len()];

/// The wealth, kept as logarithms of settled bets times a short product of open ones.
#[derive(Clone, Debug)]
pub struct Wealth {
    settled: PerBettor,
    /// Each bettor's share of the wealth when the last chunk was settled.
    base: PerBettor,
    open: PerBettor,
    bets: u32,
}

impl Wealth {
    pub fn new() -> Self {
        Self {
            settled: BETTORS.map(|bettor| bettor.weight.ln()),
            base: BETTORS.map(|bettor| bettor.weight),
            open: [1.0; BETTORS.len()],
            bets: 0,
        }
    }

    /// One more bet; `payoff` from −1 to 1 is the block's result, before slopes and caps.
    pub fn bet(&mut self, payoff: f64) {
        for (open, bettor) in self.open.iter_mut().zip(BETTORS) {
            *open *= 1.0 + (bettor.slope * payoff).clamp(-bettor.cap, bettor.cap);
        }
        self.settle_if_due();
    }

    /// One more bet on the way to `bar`; returns whether the wealth reaches it.
    ///
    /// Money above the bar buys nothing. So a payoff counts only up to the p at which a win lands
    /// on the bar: it is clamped to [−p, p], and a loss costs at most the missing amount. p is
    /// fixed by the wealth before the block and the clamped payoff is still odd in the coin, so the
    /// wealth stays a test martingale (docs/methods/interval.md). Each bar has a separate wealth.
    ///
    /// Larger payoffs in any round never reach the bar later, and a wealth with this rule is
    /// never behind one without. Both follow by induction over the rounds, for each bettor: more
    /// money and a lower bar only lower p, so that a loss takes a smaller part; a win either
    /// reaches the bar or is not clamped.
    pub fn bet_towards(&mut self, payoff: f64, bar: f64) -> bool {
        // A win needs no clamp: beyond p it reaches the bar in any case.
        if payoff < 0.0 {
            self.bet(-self.payoff_that_reaches(bar, -payoff));
        } else {
            self.bet(payoff);
        }
        self.total() >= bar
    }

    /// The payoff with which a win lands on the bar, if that is less than `most`; else `most`.
    fn payoff_that_reaches(&self, bar: f64, most: f64) -> f64 {
        let mut shares = [0.0; BETTORS.len()];
        for (share, (base, open)) in shares.iter_mut().zip(self.base.iter().zip(&self.open)) {
            *share = base * open;
        }
        let missing = bar - shares.iter().sum::<f64>();
        let owners = || shares.iter().zip(BETTORS);
        let won = owners().map(|(share, bettor)| share * (bettor.slope * most).min(bettor.cap));
        if won.sum::<f64>() <= missing {
            return most;
        }
        // The gain is concave in the payoff: each tangent reaches the bar too early, and the
        // bettors whose stake has reached its cap by then are known to be capped.
        let mut payoff = 0.0;
        for _ in 0..=BETTORS.len() {
            let (mut slope, mut capped) = (0.0, 0.0);
            for (share, bettor) in owners() {
                if bettor.slope * payoff < bettor.cap {
                    slope += share * bettor.slope;
                } else {
                    capped += share * bettor.cap;
                }
            }
            let next = (missing - capped) / slope;
            if next.is_nan() || next <= payoff {
                break;
            }
            payoff = next;
        }
        payoff.min(most)
    }

    /// One more bet on the mean of two stakes, from the payoffs of two pairs of one block.
    pub fn bet_on_both(&mut self, first: f64, second: f64) {
        for (open, bettor) in self.open.iter_mut().zip(BETTORS) {
            let stake = |payoff: f64| (bettor.slope * payoff).clamp(-bettor.cap, bettor.cap);
            *open *= 1.0 + 0.5 * (stake(first) + stake(second));
        }
        self.settle_if_due();
    }

    /// The wealth now; a share that fell below the smallest float counts as 0, which is on the
    /// safe side.
    pub fn total(&self) -> f64 {
        let owned = self.base.iter().zip(&self.open);
        owned.map(|(base, open)| base * open).sum()
    }

    /// The logarithm of the wealth, whatever its size.
    pub fn ln(&self) -> f64 {
        let mut logs = self.settled;
        for (log, open) in logs.iter_mut().zip(self.open) {
            *log += open.ln();
        }
        ln_sum_exp(&logs)
    }

    fn settle_if_due(&mut self) {
        self.bets += 1;
        if self.bets < BETS_PER_CHUNK {
            return;
        }
        for index in 0..BETTORS.len() {
            self.settled[index] += self.open[index].ln();
            self.base[index] = self.settled[index].exp();
        }
        self.open = [1.0; BETTORS.len()];
        self.bets = 0;
    }
}

/// ln of the sum of e^x, without overflow.
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
    fn wealth_comes_back_from_far_below_the_smallest_float() {
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
    fn immense_wealth_keeps_its_logarithm() {
        let mut wealth = Wealth::new();
        for _ in 0..10_000 {
            wealth.bet(1.0);
        }
        let by_hand = 10_000.0 * 1.95_f64.ln() + 0.25_f64.ln();
        assert!((wealth.ln() - by_hand).abs() < 1e-6);
        assert!(wealth.total() > 1e300);
    }

    #[test]
    fn a_loss_before_the_bar_costs_only_what_a_win_would_have_needed() {
        let bar = 40.0;
        let mut wealth = Wealth::new();
        for _ in 0..6 {
            assert!(!wealth.bet_towards(1.0, bar));
        }
        let before = wealth.total();
        let mut winner = wealth.clone();
        let mut in_full = wealth.clone();
        assert!(winner.bet_towards(1.0, bar));
        assert!(!wealth.bet_towards(-1.0, bar));
        in_full.bet(-1.0);
        // Fair: the win would have been as much.
        assert!((before - wealth.total() - (bar - before)).abs() < 1e-9);
        assert!(in_full.total() < wealth.total());
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
