//! Adjustment for a covariate that was read before each trial, its slope learnt from past blocks.
//!
//! A block's difference d becomes d − β̂·x, where x is the covariate at the candidate's trial minus
//! that at the baseline's. No program can move what was read before it began, so under a constant
//! ratio the order coin says nothing about d − β̂·x − θ either, and bets on it are fair.

use crate::order_statistics::{median, scale};

/// At most this many covariates of a block.
pub const MOST_COVARIATES: usize = 8;

/// Covariates at the candidate's trial minus those at the baseline's; NaN where one is unknown.
pub type CovariateDifferences = [f64; MOST_COVARIATES];

/// No covariate is known.
pub const NO_COVARIATES: CovariateDifferences = [f64::NAN; MOST_COVARIATES];

/// Blocks with a covariate before its slope is learnt.
const FEWEST_BLOCKS: usize = 5;
/// A difference of a covariate beyond 3 scales counts as 3: one reading cannot move a bet far.
const LIMIT: f64 = 3.0;
/// Residuals beyond 1.5 scales count as 1.5 (Huber 1964).
const HUBERISED_AT: f64 = 1.5;
const REWEIGHTINGS: usize = 4;
/// A slope is used where its F statistic exceeds this, plus 2 ln K where the best of K is taken,
/// and is shrunk by one minus the threshold over F (the nonnegative garrote: Breiman 1995).
const LEAST_F: f64 = 3.0;
/// Root of n times the mean over the root mean square of x beyond which the two conditions do not
/// find the covariate alike, as where one of them leaves the machine hotter than the other.
const MOST_IMBALANCE: f64 = 2.5;

/// A covariate and how much it explains of the differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjustment {
    /// Which covariate.
    pub covariate: usize,
    /// Log units per unit of the covariate.
    pub slope: f64,
    limit: f64,
}

impl Adjustment {
    /// The part of a block's difference that the covariate explains; 0 where it is unknown.
    pub(crate) fn explained(self, covariates: &CovariateDifferences) -> f64 {
        let x = covariates[self.covariate];
        if x.is_nan() {
            0.0
        } else {
            self.slope * x.clamp(-self.limit, self.limit)
        }
    }
}

/// What the adjustment did to the blocks so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjustmentSummary {
    /// The covariate that adjusted most blocks.
    pub covariate: usize,
    /// Blocks whose difference was adjusted.
    pub blocks: usize,
    /// Spread of the differences that were bet on, over that of the differences themselves.
    pub spread_ratio: f64,
}

/// Blocks so far, as an adjustment is learnt from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covariates {
    rows: Vec<CovariateDifferences>,
    any: bool,
}

impl Covariates {
    pub(crate) fn add(&mut self, engine_adjusts: bool, covariates: &CovariateDifferences) {
        self.rows.push(*covariates);
        self.any |= engine_adjusts && covariates.iter().any(|x| x.is_finite());
    }

    pub(crate) fn rows(&self) -> &[CovariateDifferences] {
        &self.rows
    }

    /// The covariate that explains most, if it explains more than chance would.
    pub(crate) fn learn(&self, differences: &[f64], signs: &[f64]) -> Option<Adjustment> {
        if !self.any {
            return None;
        }
        let fits: Vec<(f64, Adjustment)> = (0..MOST_COVARIATES)
            .filter_map(|covariate| self.fit(covariate, differences, signs))
            .collect();
        let threshold = LEAST_F + 2.0 * (fits.len().max(1) as f64).ln();
        let (f, best) = fits
            .into_iter()
            .max_by(|one, two| one.0.total_cmp(&two.0))?;
        (f > threshold).then_some(Adjustment {
            slope: best.slope * (1.0 - threshold / f),
            ..best
        })
    }

    /// F statistic and slope of one covariate, by a Huber regression within the two orders.
    fn fit(
        &self,
        covariate: usize,
        differences: &[f64],
        signs: &[f64],
    ) -> Option<(f64, Adjustment)> {
        let mut y = Vec::new();
        let mut x = Vec::new();
        let mut order = Vec::new();
        let blocks = self.rows.iter().zip(differences).zip(signs);
        for ((row, &difference), &sign) in blocks {
            if row[covariate].is_finite() && difference.is_finite() {
                x.push(row[covariate]);
                y.push(difference);
                order.push(sign);
            }
        }
        let count = x.len() as f64;
        if x.len() < FEWEST_BLOCKS || 2 * x.len() < self.rows.len() {
            return None;
        }
        let mut scratch = Vec::with_capacity(x.len());
        let mut spread = scale(&x, 0.0, &mut scratch);
        if spread == 0.0 {
            // Most differences of a count are 0.
            spread = (x.iter().map(|x| x * x).sum::<f64>() / count).sqrt();
        }
        let limit = LIMIT * spread;
        if limit.is_nan() || limit <= 0.0 {
            return None;
        }
        for x in &mut x {
            *x = x.clamp(-limit, limit);
        }
        let square: f64 = x.iter().map(|x| x * x).sum();
        if x.iter().sum::<f64>().abs() > MOST_IMBALANCE * square.sqrt() {
            return None;
        }
        for sign in [1.0, -1.0] {
            centre(&mut y, &mut x, &order, sign, &mut scratch);
        }
        let (slope, f) = huber_slope(&x, &y, &mut scratch)?;
        let adjustment = Adjustment {
            covariate,
            slope,
            limit,
        };
        Some((f, adjustment))
    }
}

/// Takes what is common to the blocks of one order out of the differences and the covariate.
fn centre(y: &mut [f64], x: &mut [f64], order: &[f64], sign: f64, scratch: &mut Vec<f64>) {
    let here = || (0..order.len()).filter(|&i| order[i] * sign > 0.0);
    scratch.clear();
    scratch.extend(here().map(|i| y[i]));
    let Some(middle) = median(scratch) else {
        return;
    };
    let mean = here().map(|i| x[i]).sum::<f64>() / scratch.len() as f64;
    for i in here() {
        y[i] -= middle;
        x[i] -= mean;
    }
}

/// Slope through the origin and its F statistic, by reweighted least squares.
fn huber_slope(x: &[f64], y: &[f64], scratch: &mut Vec<f64>) -> Option<(f64, f64)> {
    let mut slope = 0.0;
    let mut f = 0.0;
    let mut residuals = y.to_vec();
    for _ in 0..REWEIGHTINGS {
        let limit = HUBERISED_AT * scale(&residuals, 0.0, scratch);
        if limit <= 0.0 {
            return None;
        }
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for ((x, y), residual) in x.iter().zip(y).zip(&residuals) {
            let weight = (limit / residual.abs()).min(1.0);
            xx += weight * x * x;
            xy += weight * x * y;
            yy += weight * y * y;
        }
        if xx <= 0.0 {
            return None;
        }
        slope = xy / xx;
        let left = (yy - slope * xy).max(f64::MIN_POSITIVE);
        // A slope and two centres were fitted.
        f = (x.len() as f64 - 3.0) * slope * xy / left;
        for ((residual, x), y) in residuals.iter_mut().zip(x).zip(y) {
            *residual = y - slope * x;
        }
    }
    slope.is_finite().then_some((slope, f))
}
