//! P-values of t-tests that compare the means of matched covariates.

use crate::fitness::covariates::{Covariates, PADDING};
use crate::fitness::links::Link;
use crate::instructions::Instructions;
use crate::problem::Rules;
use equipoise_special::Student;

/// Weighted mean of the differences within pairs, and the sum of squares around it, in each column.
#[derive(Default)]
pub struct Differences {
    /// Total weight of the pairs so far.
    weight: f64,
    mean: Vec<f64>,
    squares: Vec<f64>,
    // The same numbers for one batch of links.
    batch_mean: Vec<f64>,
    batch_squares: Vec<f64>,
}

impl Differences {
    pub fn start(&mut self, stride: usize) {
        self.weight = 0.0;
        for sums in [&mut self.mean, &mut self.squares] {
            sums.clear();
            sums.resize(stride, 0.0);
        }
    }

    /// Adds the pairs of a batch of links, in two passes. Batches are combined as in Chan, Golub
    /// and `LeVeque` (1983, American Statistician 37).
    pub fn add(&mut self, covariates: &Covariates, links: &[Link], instructions: Instructions) {
        let weight: f64 = links.iter().map(|link| link.weight).sum();
        if weight <= 0.0 {
            return;
        }
        let stride = covariates.stride;
        for sums in [&mut self.batch_mean, &mut self.batch_squares] {
            sums.clear();
            sums.resize(stride, 0.0);
        }
        let batch = Batch { covariates, links };
        // The shift is 0 in the first pass, which sums the differences.
        let shift = &self.batch_squares;
        batch.sums(instructions, shift, false, &mut self.batch_mean);
        for sum in &mut self.batch_mean {
            *sum /= weight;
        }
        let shift = &self.batch_mean;
        batch.sums(instructions, shift, true, &mut self.batch_squares);
        let previous_weight = self.weight;
        self.weight += weight;
        for column in 0..stride {
            let delta = self.batch_mean[column] - self.mean[column];
            self.squares[column] += self.batch_squares[column]
                + delta * delta * (previous_weight * weight / self.weight);
            self.mean[column] += if previous_weight > 0.0 {
                delta * (weight / self.weight)
            } else {
                delta
            };
        }
    }

    /// Computes the p-values of the paired tests. The divisor of the variance is the total weight
    /// of the pairs. The degrees of freedom are `matched_weight` minus 1: the same total weight,
    /// without rounding errors.
    pub fn p_values(&self, columns: usize, matched_weight: f64, output: &mut Vec<f64>) {
        let student = Student::new(matched_weight - 1.0);
        for column in 0..columns {
            let (mean, squares) = (self.mean[column], self.squares[column]);
            output.push(if mean == 0.0 && squares == 0.0 {
                1.0
            } else {
                student.two_sided(mean * self.weight / squares.sqrt())
            });
        }
    }
}

/// Some links, and the values of their points.
struct Batch<'a> {
    covariates: &'a Covariates,
    links: &'a [Link],
}

impl Batch<'_> {
    /// Sums the weighted differences minus `shift`, or their squares.
    fn sums(&self, instructions: Instructions, shift: &[f64], squared: bool, output: &mut [f64]) {
        assert!(instructions.is_available());
        match instructions {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the check above found AVX-512.
            Instructions::Avx512 => unsafe { self.sums_with_avx512(shift, squared, output) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the check above found AVX2.
            Instructions::Avx2 => unsafe { self.sums_with_avx2(shift, squared, output) },
            _ => self.sums_by_columns(shift, squared, output),
        }
    }

    /// # Safety
    /// The processor must have AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn sums_with_avx512(&self, shift: &[f64], squared: bool, output: &mut [f64]) {
        self.sums_by_columns(shift, squared, output);
    }

    /// # Safety
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn sums_with_avx2(&self, shift: &[f64], squared: bool, output: &mut [f64]) {
        self.sums_by_columns(shift, squared, output);
    }

    /// Sums each column in the order of the links, so that all instructions give the same sums.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    fn sums_by_columns(&self, shift: &[f64], squared: bool, output: &mut [f64]) {
        for (group, output) in output.chunks_exact_mut(PADDING).enumerate() {
            let columns = group * PADDING..(group + 1) * PADDING;
            let mut sums = [0.0; PADDING];
            let mut shifts = [0.0; PADDING];
            shifts.copy_from_slice(&shift[columns.clone()]);
            for link in self.links {
                let treated = &self.covariates.values_of(link.treated as usize)[columns.clone()];
                let control = &self.covariates.values_of(link.control as usize)[columns.clone()];
                for column in 0..PADDING {
                    let delta = treated[column] - control[column] - shifts[column];
                    sums[column] += link.weight * if squared { delta * delta } else { delta };
                }
            }
            output.copy_from_slice(&sums);
        }
    }
}

/// Computes the p-values of Welch's tests of the matched treated against the matched controls.
/// `point_weights` has the total weight of each point's pairs, and `matched_weight` is the total
/// weight of all pairs. The divisor of a variance is `matched_weight` minus 1. If neither arm
/// varies, different means have the p-value 0, or NaN with the rules of R.
pub fn welch(
    covariates: &Covariates,
    controls: usize,
    point_weights: &[f64],
    matched_weight: f64,
    rules: Rules,
    output: &mut Vec<f64>,
) {
    let points = point_weights.len();
    for column in 0..covariates.columns {
        let moments = |points| moments_of(covariates, column, points, point_weights);
        let (mean_control, control_squares) = moments(0..controls);
        let (mean_treated, treated_squares) = moments(controls..points);
        let [control, treated] = [control_squares, treated_squares]
            .map(|squares| squares / (matched_weight - 1.0) / matched_weight);
        let variance = treated + control;
        let delta = mean_treated - mean_control;
        let degrees_of_freedom =
            variance * variance * (matched_weight - 1.0) / (treated * treated + control * control);
        output.push(match (variance == 0.0, delta == 0.0) {
            (true, true) => 1.0,
            (true, false) if rules == Rules::Correct => 0.0,
            _ => Student::new(degrees_of_freedom).two_sided(delta / variance.sqrt()),
        });
    }
}

/// Returns the weighted mean of a column over some points, and the sum of squares around it.
fn moments_of(
    covariates: &Covariates,
    column: usize,
    points: std::ops::Range<usize>,
    point_weights: &[f64],
) -> (f64, f64) {
    let values = || {
        points
            .clone()
            .filter(|&point| point_weights[point] > 0.0)
            .map(|point| (point_weights[point], covariates.values_of(point)[column]))
    };
    // Values are relative to one of them, so that a constant column has no rounding error.
    let origin = values().next().map_or(0.0, |(_, value)| value);
    let total: f64 = values().map(|(weight, _)| weight).sum();
    let shift: f64 = values()
        .map(|(weight, value)| weight * (value - origin))
        .sum();
    let mean = origin + shift / total;
    let squares = values()
        .map(|(weight, value)| weight * (value - mean).powi(2))
        .sum();
    (mean, squares)
}
