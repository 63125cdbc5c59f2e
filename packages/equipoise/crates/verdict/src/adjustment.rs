//! Adjusts differences for a covariate, such as a temperature, that was read before each trial.
//!
//! A block's difference d becomes d − β̂·x. The slope β̂ comes from past blocks. x is the
//! candidate's reading of the covariate minus the baseline's reading. The bets are fair only under
//! two assumptions: the ratio is constant, and both conditions change the next reading in the same
//! way. This module cannot check that, so the user chooses the covariates
//! (docs/methods/covariates.md).

use crate::order_statistics::{mad_scale, median};

/// Largest number of covariates of a block.
pub const MAX_COVARIATES: usize = 8;

/// A value for each covariate; NaN if unknown.
pub type PerCovariate = [f64; MAX_COVARIATES];

/// Covariates that were read before the two trials of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Readings {
    /// Covariates before the candidate's trial minus covariates before the baseline's.
    pub differences: PerCovariate,
    /// Sum of the covariates before both trials.
    pub sums: PerCovariate,
    /// Sum of both log costs; with `sums` it gives a second estimate of the slope.
    pub cost_sum: f64,
}

/// The readings of a block without known covariates.
pub const NO_READINGS: Readings = Readings {
    differences: [f64::NAN; MAX_COVARIATES],
    sums: [f64::NAN; MAX_COVARIATES],
    cost_sum: f64::NAN,
};

/// Smallest number of blocks with a known covariate from which its slope is estimated.
const MIN_BLOCKS: usize = 3;
/// From this number of blocks on, each order has its own centre, and each slope its own variance.
const MANY_BLOCKS: usize = 20;
/// Two slopes from few blocks share a variance if the second variance is below this multiple of the
/// first.
const MAX_SHARED_VARIANCE_RATIO: f64 = 9.0;
/// Readings are clipped at this number of MAD scales: an extreme reading cannot change a bet much.
const CLIP_READING_SCALES: f64 = 3.0;
/// Residuals are clipped at this number of MAD scales (Huber 1964).
const CLIP_RESIDUAL_SCALES: f64 = 2.0;
/// Rounds of reweighted least squares.
const REWEIGHTINGS: usize = 4;
/// A slope is used if its F statistic exceeds a threshold. The threshold is this number plus 2 ln K
/// for the best of K covariates. The slope is then multiplied by 1 − (threshold/F)² (Breiman 1995).
const BASE_F_THRESHOLD: f64 = 2.0;
/// Largest difference of a covariate between the two conditions, in standard errors.
const MAX_IMBALANCE_ERRORS: f64 = 3.0;
/// Largest factor on the carry-over of a covariate (`leverage` in `Covariates::fit`).
const MAX_LEVERAGE: f64 = 2.0;
/// Variance of a sum of successive differences with random signs, over the sum of their squares.
const STEP_VARIANCE_RATIO: f64 = 1.5;
/// Values with at least this von Neumann ratio count as independent. The ratio is the mean square
/// of successive differences over the variance. Independent values have the ratio 2 (von Neumann
/// 1941).
const MIN_NEUMANN_RATIO: f64 = 1.5;
/// Information about a slope in successive differences, over the information in independent values.
const STEP_INFORMATION_RATIO: f64 = 2.0 / 3.0;
/// Largest difference between two estimates of one slope, in standard errors.
const MAX_DISAGREEMENT_ERRORS: f64 = 2.5;

/// A covariate and its slope, which explain a part of the differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjustment {
    /// Index of the covariate.
    pub covariate: usize,
    /// Log units per unit of the covariate.
    pub slope: f64,
    /// Differences of the readings are clipped at this limit.
    limit: f64,
}

impl Adjustment {
    /// The part of a block's difference that the covariate explains; 0 if the covariate is unknown.
    pub(crate) fn explained_part(self, readings: &Readings) -> f64 {
        let x = readings.differences[self.covariate];
        if x.is_nan() {
            0.0
        } else {
            self.slope * x.clamp(-self.limit, self.limit)
        }
    }
}

/// The effect of the adjustment on the blocks so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjustmentSummary {
    /// Index of the covariate that adjusted most blocks.
    pub covariate: usize,
    /// Blocks whose difference was adjusted.
    pub blocks: usize,
    /// Spread of the adjusted differences, divided by the spread of the original differences.
    pub spread_ratio: f64,
}

/// The readings of all blocks so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covariates {
    rows: Vec<Readings>,
    has_readings: bool,
}

impl Covariates {
    pub(crate) fn add(&mut self, readings: &Readings) {
        self.rows.push(*readings);
        self.has_readings |= readings.differences.iter().any(|x| x.is_finite());
    }

    pub(crate) fn rows(&self) -> &[Readings] {
        &self.rows
    }

    /// The adjustment by the covariate that explains most, if it explains more than chance would.
    pub(crate) fn estimate(&self, differences: &[f64], signs: &[f64]) -> Option<Adjustment> {
        if !self.has_readings {
            return None;
        }
        let fits: Vec<(f64, Adjustment)> = (0..MAX_COVARIATES)
            .filter_map(|covariate| self.fit(covariate, differences, signs))
            .collect();
        let threshold = BASE_F_THRESHOLD + 2.0 * (fits.len().max(1) as f64).ln();
        let (f, best) = fits
            .into_iter()
            .max_by(|(first_f, _), (second_f, _)| first_f.total_cmp(second_f))?;
        (f > threshold).then_some(Adjustment {
            slope: best.slope * (1.0 - (threshold / f).powi(2)),
            ..best
        })
    }

    /// The F statistic and the slope of a covariate; `None` if the slope cannot be used.
    ///
    /// The slope combines an estimate from the differences within blocks with an estimate from the
    /// sums of blocks. It is not used if the covariate differs between the conditions, or if its
    /// carry-over is too large.
    fn fit(
        &self,
        covariate: usize,
        differences: &[f64],
        signs: &[f64],
    ) -> Option<(f64, Adjustment)> {
        let mut within_blocks = Points::default();
        let mut known_signs = Vec::new();
        let blocks = self.rows.iter().zip(differences).zip(signs);
        for ((row, &difference), &sign) in blocks {
            if within_blocks.add(row.differences[covariate], difference) {
                known_signs.push(sign);
            }
        }
        let count = within_blocks.x.len();
        if count < MIN_BLOCKS || 2 * count < self.rows.len() {
            return None;
        }
        let limit = within_blocks.clip_readings(0.0)?;
        let squared_reading_sum: f64 = within_blocks.x.iter().map(|x| x * x).sum();
        let imbalance = within_blocks.x.iter().sum::<f64>().abs() / squared_reading_sum.sqrt();
        let has_many_blocks = count >= MANY_BLOCKS;
        if has_many_blocks {
            within_blocks.centre(|index| known_signs[index] > 0.0);
            within_blocks.centre(|index| known_signs[index] < 0.0);
        } else {
            within_blocks.centre(|_| true);
        }
        let mut slope = within_blocks.slope(if has_many_blocks { 3 } else { 2 })?;
        if let Some(slope_of_sums) = self.slope_of_sums(covariate) {
            let may_share_variance = !has_many_blocks;
            slope = slope.combined_with(slope_of_sums, may_share_variance);
        }
        let f = slope.value.powi(2) * slope.precision();
        // A carry-over of one standard error of the covariate moves a bet by this many standard
        // errors of the difference.
        let leverage = (f / count as f64).sqrt().clamp(1.0, MAX_LEVERAGE);
        let carry_over_errors = leverage * self.carry_over_errors(covariate, signs);
        if imbalance.max(carry_over_errors) > MAX_IMBALANCE_ERRORS {
            return None;
        }
        let adjustment = Adjustment {
            covariate,
            slope: slope.value,
            limit,
        };
        Some((f, adjustment))
    }

    /// The carry-over to a covariate, in standard errors. It says how much the reading before a
    /// block depends on the last condition of the previous block.
    fn carry_over_errors(&self, covariate: usize, signs: &[f64]) -> f64 {
        let first_reading = |index: usize| {
            let row = &self.rows[index];
            0.5 * (row.sums[covariate] - signs[index] * row.differences[covariate])
        };
        let (mut sum, mut square_sum) = (0.0, 0.0);
        for index in 2..self.rows.len() {
            let step = first_reading(index) - first_reading(index - 1);
            let carry_over = 0.5 * (signs[index - 1] - signs[index - 2]) * step;
            if carry_over.is_finite() {
                sum += carry_over;
                square_sum += carry_over * carry_over;
            }
        }
        if square_sum > 0.0 {
            sum.abs() / (STEP_VARIANCE_RATIO * square_sum).sqrt()
        } else {
            0.0
        }
    }

    /// The slope from the sums of blocks. If the machine drifts, it comes from successive
    /// differences of the sums.
    fn slope_of_sums(&self, covariate: usize) -> Option<Slope> {
        let mut sums = Points::default();
        for row in &self.rows {
            sums.add(row.sums[covariate], row.cost_sum);
        }
        let middle = median(&mut sums.x.clone())?;
        sums.clip_readings(middle)?;
        let mut steps = sums.clone();
        sums.centre(|_| true);
        let slope = sums.slope(2)?;
        if sums.neumann_ratio(slope.value) >= MIN_NEUMANN_RATIO {
            return Some(slope);
        }
        steps.take_differences();
        let slope = steps.slope(1)?;
        Some(Slope {
            squared_reading_sum: slope.squared_reading_sum * STEP_INFORMATION_RATIO,
            ..slope
        })
    }
}

/// A covariate (x) and a log cost (y) for each block.
#[derive(Clone, Debug, Default)]
struct Points {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Points {
    /// Adds a block if both values are known, and returns whether they are.
    fn add(&mut self, x: f64, y: f64) -> bool {
        let is_known = x.is_finite() && y.is_finite();
        if is_known {
            self.x.push(x);
            self.y.push(y);
        }
        is_known
    }

    /// Clips the covariate at a distance from `middle`, and returns the distance; `None` if all
    /// values of the covariate are equal.
    fn clip_readings(&mut self, middle: f64) -> Option<f64> {
        let mut spread = mad_scale(&self.x, middle, &mut Vec::new());
        if spread == 0.0 {
            // The MAD of a count is 0 if most differences are 0.
            let squares = self.x.iter().map(|x| (x - middle).powi(2));
            spread = (squares.sum::<f64>() / self.x.len() as f64).sqrt();
        }
        let limit = CLIP_READING_SCALES * spread;
        if limit.is_nan() || limit <= 0.0 {
            return None;
        }
        for x in &mut self.x {
            *x = x.clamp(middle - limit, middle + limit);
        }
        Some(limit)
    }

    /// Centres the selected blocks: the log costs by their median, the covariate by its mean.
    fn centre(&mut self, is_selected: impl Fn(usize) -> bool) {
        let selected: Vec<usize> = (0..self.x.len()).filter(|&i| is_selected(i)).collect();
        let Some(middle) = median(&mut selected.iter().map(|&i| self.y[i]).collect::<Vec<_>>())
        else {
            return;
        };
        let mean = selected.iter().map(|&i| self.x[i]).sum::<f64>() / selected.len() as f64;
        for i in selected {
            self.y[i] -= middle;
            self.x[i] -= mean;
        }
    }

    /// Replaces the values by the differences between successive blocks.
    fn take_differences(&mut self) {
        let steps = |values: &[f64]| values.windows(2).map(|pair| pair[1] - pair[0]).collect();
        self.x = steps(&self.x);
        self.y = steps(&self.y);
    }

    /// The von Neumann ratio of the residuals (`MIN_NEUMANN_RATIO`).
    fn neumann_ratio(&self, slope: f64) -> f64 {
        let residuals: Vec<f64> = self
            .x
            .iter()
            .zip(&self.y)
            .map(|(x, y)| y - slope * x)
            .collect();
        let steps = residuals.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
        steps.sum::<f64>() / residuals.iter().map(|value| value * value).sum::<f64>()
    }

    /// The slope through the origin, by reweighted least squares. `parameter_count` parameters were
    /// estimated: the slope and the centres.
    fn slope(&self, parameter_count: usize) -> Option<Slope> {
        let degrees_of_freedom = self
            .x
            .len()
            .checked_sub(parameter_count)
            .filter(|n| *n > 0)? as f64;
        let mut scratch = Vec::new();
        let mut residuals = self.y.clone();
        let mut slope = None;
        for _ in 0..REWEIGHTINGS {
            let limit = CLIP_RESIDUAL_SCALES * mad_scale(&residuals, 0.0, &mut scratch);
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
                squared_reading_sum: xx,
                squared_residual_sum: (yy - value * xy).max(f64::MIN_POSITIVE),
                degrees_of_freedom,
            });
        }
        slope.filter(|slope| slope.value.is_finite())
    }
}

/// A slope and its precision.
#[derive(Clone, Copy, Debug)]
struct Slope {
    value: f64,
    /// Sum of the squared readings.
    squared_reading_sum: f64,
    /// Sum of the squared residuals.
    squared_residual_sum: f64,
    /// Degrees of freedom.
    degrees_of_freedom: f64,
}

impl Slope {
    /// The reciprocal of the squared standard error.
    fn precision(&self) -> f64 {
        self.squared_reading_sum * self.degrees_of_freedom / self.squared_residual_sum
    }

    /// The mean of two slopes, weighted by their precisions. If the slopes contradict each other,
    /// the result is `self`.
    fn combined_with(self, other: Self, may_share_variance: bool) -> Self {
        let (mut first, mut second) = (self, other);
        if may_share_variance
            && second.squared_residual_sum / second.degrees_of_freedom
                < MAX_SHARED_VARIANCE_RATIO * first.squared_residual_sum / first.degrees_of_freedom
        {
            let squared_residual_sum = first.squared_residual_sum + second.squared_residual_sum;
            let degrees_of_freedom = first.degrees_of_freedom + second.degrees_of_freedom;
            first = Self {
                squared_residual_sum,
                degrees_of_freedom,
                ..first
            };
            second = Self {
                squared_residual_sum,
                degrees_of_freedom,
                ..second
            };
        }
        let (first_precision, second_precision) = (first.precision(), second.precision());
        let error = (first_precision.recip() + second_precision.recip()).sqrt();
        if (first.value - second.value).abs() > MAX_DISAGREEMENT_ERRORS * error {
            return self;
        }
        let total = first_precision + second_precision;
        Self {
            value: (first.value * first_precision + second.value * second_precision) / total,
            squared_reading_sum: total * first.squared_residual_sum / first.degrees_of_freedom,
            ..first
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings, differences and orders of blocks with slope 2 for the first covariate.
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
        let adjustment = covariates.estimate(&differences, &signs).expect("a slope");
        assert_eq!(adjustment.covariate, 0);
        assert!((adjustment.slope - 2.0).abs() < 0.02, "{adjustment:?}");
        let mut readings = NO_READINGS;
        assert!(adjustment.explained_part(&readings).abs() < f64::MIN_POSITIVE);
        readings.differences[0] = 1e9;
        let bounded = adjustment.explained_part(&readings);
        assert!(bounded < 2.0 * CLIP_READING_SCALES * 20.0, "{bounded}");
    }

    #[test]
    fn a_covariate_that_is_always_higher_for_one_condition_is_not_used() {
        let (covariates, differences, signs) = blocks(40, 0.1, 30.0);
        assert_eq!(covariates.estimate(&differences, &signs), None);
    }

    #[test]
    fn no_covariate_is_used_if_only_chance_relates_it_to_the_differences() {
        let (covariates, _, signs) = blocks(40, 0.1, 0.0);
        let chance: Vec<f64> = (0..40).map(|i| f64::from((i * 29) % 31)).collect();
        assert_eq!(covariates.estimate(&chance, &signs), None);
    }

    #[test]
    fn sums_of_blocks_improve_the_slope_unless_they_contradict_it() {
        let slope = |agrees: f64| {
            let (mut covariates, differences, signs) = blocks(40, 2.0, 0.0);
            for (i, row) in (0u32..).zip(&mut covariates.rows) {
                let x = f64::from((i * 7) % 19) - 9.0;
                row.sums[0] = x;
                row.cost_sum = agrees * 2.0 * x + 0.01 * f64::from((i * 17) % 13);
            }
            covariates
                .estimate(&differences, &signs)
                .expect("a slope")
                .slope
        };
        assert!((slope(1.0) - 2.0).abs() < 0.01, "{}", slope(1.0));
        assert!((slope(-5.0) - 2.0).abs() < 0.3, "{}", slope(-5.0));
    }
}
