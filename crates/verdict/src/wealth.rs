//! What a bettor owns who spreads one unit of money evenly over four stakes.

/// The shares of the money that are staked (verdict.md §1).
pub const STAKES: [f64; 4] = [0.1, 0.3, 0.6, 0.9];

/// So many bets lie between 1e-64 and 1e18: far from where a float over- or underflows.
const BETS_PER_CHUNK: u32 = 64;

/// The wealth, kept as logarithms of settled bets times a short product of open ones.
#[derive(Clone, Debug)]
pub struct Wealth {
    settled: [f64; 4],
    base: [f64; 4],
    open: [f64; 4],
    bets: u32,
}

impl Default for Wealth {
    fn default() -> Self {
        Self {
            settled: [0.0; 4],
            base: [1.0; 4],
            open: [1.0; 4],
            bets: 0,
        }
    }
}

impl Wealth {
    /// One more bet; `payoff` from −1 to 1 per unit staked.
    pub fn bet(&mut self, payoff: f64) {
        for (open, stake) in self.open.iter_mut().zip(STAKES) {
            *open *= 1.0 + stake * payoff;
        }
        self.bets += 1;
        if self.bets == BETS_PER_CHUNK {
            self.settle();
        }
    }

    /// The wealth now; a stake that fell below the smallest float counts as 0, which is on the
    /// safe side.
    pub fn total(&self) -> f64 {
        let mut owned = self.base;
        for (base, open) in owned.iter_mut().zip(self.open) {
            *base *= open;
        }
        0.25 * ((owned[0] + owned[1]) + (owned[2] + owned[3]))
    }

    /// The logarithm of the wealth, whatever its size.
    pub fn ln(&self) -> f64 {
        let mut logs = self.settled;
        for (log, open) in logs.iter_mut().zip(self.open) {
            *log += open.ln();
        }
        ln_mean_exp(&logs)
    }

    fn settle(&mut self) {
        for index in 0..4 {
            self.settled[index] += self.open[index].ln();
            self.base[index] = self.settled[index].exp();
        }
        self.open = [1.0; 4];
        self.bets = 0;
    }
}

/// ln of the mean of e^x, without overflow.
pub fn ln_mean_exp(logs: &[f64]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return largest;
    }
    let sum: f64 = logs.iter().map(|log| (log - largest).exp()).sum();
    largest + (sum / logs.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_won_bets_make_fiftyfold_wealth() {
        let mut wealth = Wealth::default();
        for _ in 0..8 {
            wealth.bet(1.0);
        }
        let by_hand = (1.1_f64.powi(8) + 1.3_f64.powi(8) + 1.6_f64.powi(8) + 1.9_f64.powi(8)) / 4.0;
        assert!((wealth.total() - by_hand).abs() < 1e-12);
        assert!((wealth.ln() - by_hand.ln()).abs() < 1e-12);
        assert!((by_hand - 55.8).abs() < 0.1);
    }

    #[test]
    fn wealth_comes_back_from_far_below_the_smallest_float() {
        let mut wealth = Wealth::default();
        for _ in 0..100_000 {
            wealth.bet(-0.5);
        }
        for _ in 0..100_000 {
            wealth.bet(0.5);
        }
        let factor = |stake: f64| ((1.0 - 0.5 * stake) * (1.0 + 0.5 * stake)).ln();
        let by_hand = ln_mean_exp(&STAKES.map(|stake| 100_000.0 * factor(stake)));
        assert!((wealth.ln() / by_hand - 1.0).abs() < 1e-9);
        assert!(wealth.total() >= 0.0);
    }

    #[test]
    fn immense_wealth_keeps_its_logarithm() {
        let mut wealth = Wealth::default();
        for _ in 0..10_000 {
            wealth.bet(1.0);
        }
        let by_hand = 10_000.0 * 1.9_f64.ln() - 4.0_f64.ln();
        assert!((wealth.ln() - by_hand).abs() < 1e-6);
        assert!(wealth.total() > 1e300);
    }
}
