//! Adjustment for a covariate that was read before each trial, with a slope learnt from past
//! blocks.
//!
//! A block's difference d becomes d − β̂·x, where x is the covariate at the candidate's trial minus
//! that at the baseline's. A program cannot move what was read before its own trial began, but that
//! reading follows the trial before, which is often the other condition's. Bets on d − β̂·x − θ are
//! fair only if the ratio is constant and both conditions leave the covariate alike for the trial
//! after them. Nothing here can make sure of the latter, so the user chooses to adjust.

use crate::order_statistics::{median, scale};

/// At most this many covariates of a block.
pub const MOST_COVARIATES: usize = 8;

/// One value for each covariate; NaN if unknown.
pub type PerCovariate = [f64; MOST_COVARIATES];

/// Readings before the two trials of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Readings {
    /// Covariates at the candidate's trial minus those at the baseline's.
    pub differences: PerCovariate,
    /// Covariates of both trials together.
    pub sums: PerCovariate,
    /// Log costs of both trials together: with `sums`, a second view of the slope.
    pub cost_sum: f64,
}

/// No covariate is known.
pub const NO_READINGS: Readings = Readings {
    differences: [f64::NAN; MOST_COVARIATES],
    sums: [f64::NAN; MOST_COVARIATES],
    cost_sum: f64::NAN,
};

/// Blocks with a covariate before its slope is learnt.
const FEWEST_BLOCKS: usize = 3;
/// Blocks before the two orders have a centre each, and the two views a variance each.
const BLOCKS_FOR_DETAILS: usize = 20;
/// Up to this ratio of their variances, two estimates from few blocks share one variance.
const SAME_VARIANCE: f64 = 9.0;
/// A reading beyond 3 scales counts as 3: one reading cannot move a bet far.
const LIMIT: f64 = 3.0;
/// Residuals beyond 2 scales count as 2 (Huber 1964).
const HUBERISED_AT: f64 = 2.0;
const REWEIGHTINGS: usize = 4;
/// A slope is used where its F statistic exceeds this, plus 2 ln K where the best of K is taken,
/// and is shrunk by one minus the square of the threshold over F (a garrote: Breiman 1995).
const LEAST_F: f64 = 2.0;
/// Standard errors beyond which the covariate differs between the two conditions, for example if
/// one of them leaves the machine hotter.
const MOST_IMBALANCE: f64 = 3.0;
/// Largest leverage: the limit on a covariate's imbalance is divided by the leverage, which grows
/// with R² and reaches this at 0.8.
const MOST_LEVERAGE: f64 = 2.0;
/// Variance of a mean of successive differences with random signs, divided by that of independent
/// values.
const VARIANCE_OF_STEPS: f64 = 1.5;
/// Mean square of successive differences over the variance, 2 for independent values, below which
/// values follow each other too closely to be taken for independent (von Neumann 1941).
const LEAST_NEUMANN_RATIO: f64 = 1.5;
/// Information of first differences on a slope, where the values themselves are independent.
const INFORMATION_OF_STEPS: f64 = 2.0 / 3.0;
/// Standard errors by which two estimates of one slope may differ.
const MOST_DISAGREEMENT: f64 = 2.5;

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
    pub(crate) fn explained(self, readings: &Readings) -> f64 {
        let x = readings.differences[self.covariate];
        if x.is_nan() {
            0.0
        } else {
            self.slope * x.clamp(-self.limit, self.limit)
        }
    }
}

/// Effect of the adjustment on the blocks so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjustmentSummary {
    /// The covariate that adjusted most blocks.
    pub covariate: usize,
    /// Blocks whose difference was adjusted.
    pub blocks: usize,
    /// Spread of the adjusted differences, divided by the spread of the original differences.
    pub spread_ratio: f64,
}

/// Blocks so far, as an adjustment is learnt from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covariates {
    rows: Vec<Readings>,
    any: bool,
}

impl Covariates {
    pub(crate) fn add(&mut self, readings: &Readings) {
        self.rows.push(*readings);
        self.any |= readings.differences.iter().any(|x| x.is_finite());
    }

    pub(crate) fn rows(&self) -> &[Readings] {
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
            slope: best.slope * (1.0 - (threshold / f).powi(2)),
            ..best
        })
    }

    /// F statistic and slope of one covariate, from the differences within blocks and from the
    /// sums of blocks.
    fn fit(
        &self,
        covariate: usize,
        differences: &[f64],
        signs: &[f64],
    ) -> Option<(f64, Adjustment)> {
        let mut within = Points::default();
        let mut order = Vec::new();
        let blocks = self.rows.iter().zip(differences).zip(signs);
        for ((row, &difference), &sign) in blocks {
            if within.add(row.differences[covariate], difference) {
                order.push(sign);
            }
        }
        let count = within.x.len();
        if count < FEWEST_BLOCKS || 2 * count < self.rows.len() {
            return None;
        }
        let limit = within.bound_readings(0.0)?;
        let square: f64 = within.x.iter().map(|x| x * x).sum();
        let imbalance = within.x.iter().sum::<f64>().abs() / square.sqrt();
        let has_details = count >= BLOCKS_FOR_DETAILS;
        if has_details {
            within.centre(|place| order[place] > 0.0);
            within.centre(|place| order[place] < 0.0);
        } else {
            within.centre(|_| true);
        }
        let mut slope = within.slope(if has_details { 3 } else { 2 })?;
        if let Some(between) = self.slope_of_sums(covariate) {
            slope = slope.with(between, !has_details);
        }
        let f = slope.value.powi(2) * slope.precision();
        // The carry-over of a condition moves a bet this many times as far as it moves the
        // covariate, each by its own noise.
        let leverage = (f / count as f64).sqrt().clamp(1.0, MOST_LEVERAGE);
        let left_behind = leverage * self.left_behind(covariate, signs);
        if imbalance.max(left_behind) > MOST_IMBALANCE {
            return None;
        }
        let adjustment = Adjustment {
            covariate,
            slope: slope.value,
            limit,
        };
        Some((f, adjustment))
    }

    /// Standard errors by which a covariate differs at the first trial of a block with the
    /// condition that ran before it, last in the block before.
    ///
    /// The order of the previous block is independent of this block's order, so this estimates
    /// without bias how a condition changes the covariate of the next trial.
    fn left_behind(&self, covariate: usize, signs: &[f64]) -> f64 {
        let first = |place: usize| {
            let row = &self.rows[place];
            0.5 * (row.sums[covariate] - signs[place] * row.differences[covariate])
        };
        let (mut sum, mut square) = (0.0, 0.0);
        for place in 2..self.rows.len() {
            let step = first(place) - first(place - 1);
            let moved = 0.5 * (signs[place - 1] - signs[place - 2]) * step;
            if moved.is_finite() {
                sum += moved;
                square += moved * moved;
            }
        }
        if square > 0.0 {
            sum.abs() / (VARIANCE_OF_STEPS * square).sqrt()
        } else {
            0.0
        }
    }

    /// The slope of the sums of blocks, which no order and no ratio moves; of their successive
    /// differences where the machine drifts.
    fn slope_of_sums(&self, covariate: usize) -> Option<Slope> {
        let mut between = Points::default();
        for row in &self.rows {
            between.add(row.sums[covariate], row.cost_sum);
        }
        let middle = median(&mut between.x.clone())?;
        between.bound_readings(middle)?;
        let mut steps = between.clone();
        between.centre(|_| true);
        let slope = between.slope(2)?;
        if between.neumann_ratio(slope.value) >= LEAST_NEUMANN_RATIO {
            return Some(slope);
        }
        steps.difference();
        let slope = steps.slope(1)?;
        Some(Slope {
            square: slope.square * INFORMATION_OF_STEPS,
            ..slope
        })
    }
}

/// A covariate and a log cost, block by block.
#[derive(Clone, Debug, Default)]
struct Points {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Points {
    /// Adds a block, if both are known.
    fn add(&mut self, x: f64, y: f64) -> bool {
        let is_known = x.is_finite() && y.is_finite();
        if is_known {
            self.x.push(x);
            self.y.push(y);
        }
        is_known
    }

    /// Moves readings that are far from the middle nearer; returns the limit of their distance,
    /// `None` if all readings are the same.
    fn bound_readings(&mut self, middle: f64) -> Option<f64> {
        let mut spread = scale(&self.x, middle, &mut Vec::new());
        if spread == 0.0 {
            // Most differences of a count are 0.
            let squares = self.x.iter().map(|x| (x - middle).powi(2));
            spread = (squares.sum::<f64>() / self.x.len() as f64).sqrt();
        }
        let limit = LIMIT * spread;
        if limit.is_nan() || limit <= 0.0 {
            return None;
        }
        for x in &mut self.x {
            *x = x.clamp(middle - limit, middle + limit);
        }
        Some(limit)
    }

    /// Centres some blocks: the differences by their median, the covariate by its mean.
    fn centre(&mut self, is_among: impl Fn(usize) -> bool) {
        let among: Vec<usize> = (0..self.x.len()).filter(|&place| is_among(place)).collect();
        let Some(middle) = median(&mut among.iter().map(|&i| self.y[i]).collect::<Vec<_>>()) else {
            return;
        };
        let mean = among.iter().map(|&i| self.x[i]).sum::<f64>() / among.len() as f64;
        for i in among {
            self.y[i] -= middle;
            self.x[i] -= mean;
        }
    }

    /// Replaces each block by its difference to the next one.
    fn difference(&mut self) {
        let steps = |values: &[f64]| values.windows(2).map(|pair| pair[1] - pair[0]).collect();
        self.x = steps(&self.x);
        self.y = steps(&self.y);
    }

    /// Mean square of successive differences divided by the variance, of the residuals of a slope.
    fn neumann_ratio(&self, slope: f64) -> f64 {
        let left: Vec<f64> = self
            .x
            .iter()
            .zip(&self.y)
            .map(|(x, y)| y - slope * x)
            .collect();
        let steps = left.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
        steps.sum::<f64>() / left.iter().map(|value| value * value).sum::<f64>()
    }

    /// The slope through the origin, by reweighted least squares; `fitted` parameters were fitted.
    fn slope(&self, fitted: usize) -> Option<Slope> {
        let freedom = self.x.len().checked_sub(fitted).filter(|left| *left > 0)? as f64;
        let mut scratch = Vec::new();
        let mut residuals = self.y.clone();
        let mut slope = None;
        for _ in 0..REWEIGHTINGS {
            let limit = HUBERISED_AT * scale(&residuals, 0.0, &mut scratch);
            if limit <= 0.0 {
                return None;
            }
            let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
            for ((x, y), residual) in self.x.iter().zip(&self.y).zip(&residuals) {
                let weight = (limit / residual.abs()).min(1.0);
                xx += weight * x * x;
                xy += weight * x * y;
                yy += weight * y * y;
            }
            if xx <= 0.0 {
                return None;
            }
            let value = xy / xx;
            for ((residual, x), y) in residuals.iter_mut().zip(&self.x).zip(&self.y) {
                *residual = y - value * x;
            }
            slope = Some(Slope {
                value,
                square: xx,
                left: (yy - value * xy).max(f64::MIN_POSITIVE),
                freedom,
            });
        }
        slope.filter(|slope| slope.value.is_finite())
    }
}

/// A slope and how well it is known.
#[derive(Clone, Copy, Debug)]
struct Slope {
    value: f64,
    /// Sum of the squared readings.
    square: f64,
    /// Sum of the squared residuals.
    left: f64,
    freedom: f64,
}

impl Slope {
    /// The reciprocal of the squared standard error.
    fn precision(&self) -> f64 {
        self.square * self.freedom / self.left
    }

    /// Combines this estimate of the slope with another one, each weighted by its precision.
    /// Returns this one alone if they contradict each other, for example if a drift of the machine
    /// has another cause.
    fn with(self, other: Self, may_share_variance: bool) -> Self {
        let (mut this, mut that) = (self, other);
        if may_share_variance && that.left / that.freedom < SAME_VARIANCE * this.left / this.freedom
        {
            let (left, freedom) = (this.left + that.left, this.freedom + that.freedom);
            this = Self {
                left,
                freedom,
                ..this
            };
            that = Self {
                left,
                freedom,
                ..that
            };
        }
        let (one, two) = (this.precision(), that.precision());
        let error = (one.recip() + two.recip()).sqrt();
        if (this.value - that.value).abs() > MOST_DISAGREEMENT * error {
            return self;
        }
        let both = one + two;
        Self {
            value: (this.value * one + that.value * two) / both,
            square: both * this.left / this.freedom,
            ..this
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks whose costs follow the first covariate with a slope of 2, and its rows.
    fn blocks(count: u32, wobble: f64, shift: f64) -> (Covariates, Vec<f64>, Vec<f64>) {
        let mut covariates = Covariates::default();
        let (mut differences, mut signs) = (Vec::new(), Vec::new());
        for i in 0..count {
            let x = f64::from((i * 37) % 23) - 11.0;
            let noise = wobble * (f64::from((i * 17) % 13) - 6.0);
            let mut readings = NO_READINGS;
            readings.differences[0] = x + shift;
            covariates.add(&readings);
            differences.push(2.0 * x + noise);
            signs.push(if (i * i + i / 3) % 5 < 2 { 1.0 } else { -1.0 });
        }
        (covariates, differences, signs)
    }

    #[test]
    fn a_covariate_that_explains_the_differences_is_found_with_its_slope() {
        let (covariates, differences, signs) = blocks(40, 0.1, 0.0);
        let found = covariates.learn(&differences, &signs).expect("a slope");
        assert_eq!(found.covariate, 0);
        assert!((found.slope - 2.0).abs() < 0.02, "{found:?}");
        let mut readings = NO_READINGS;
        assert!(found.explained(&readings).abs() < f64::MIN_POSITIVE);
        readings.differences[0] = 1e9;
        let bounded = found.explained(&readings);
        assert!(bounded < 2.0 * LIMIT * 20.0, "{bounded}");
    }

    #[test]
    fn a_covariate_that_one_condition_always_finds_higher_is_not_used() {
        let (covariates, differences, signs) = blocks(40, 0.1, 30.0);
        assert_eq!(covariates.learn(&differences, &signs), None);
    }

    #[test]
    fn chance_is_no_slope() {
        let (covariates, _, signs) = blocks(40, 0.1, 0.0);
        let chance: Vec<f64> = (0..40).map(|i| f64::from((i * 29) % 31)).collect();
        assert_eq!(covariates.learn(&chance, &signs), None);
    }

    #[test]
    fn sums_of_blocks_sharpen_the_slope_but_where_they_contradict_it() {
        let slope = |agrees: f64| {
            let (mut covariates, differences, signs) = blocks(40, 2.0, 0.0);
            for (i, row) in (0u32..).zip(&mut covariates.rows) {
                let x = f64::from((i * 7) % 19) - 9.0;
                row.sums[0] = x;
                row.cost_sum = agrees * 2.0 * x + 0.01 * f64::from((i * 17) % 13);
            }
            covariates
                .learn(&differences, &signs)
                .expect("a slope")
                .slope
        };
        assert!((slope(1.0) - 2.0).abs() < 0.01, "{}", slope(1.0));
        assert!((slope(-5.0) - 2.0).abs() < 0.3, "{}", slope(-5.0));
    }
}
