//! Means of matched covariates and the p-values of their t-tests.

use crate::fitness::covariates::{Covariates, PAD};
use crate::fitness::links::Link;
use crate::instructions::Instructions;
use crate::problem::Rules;
use equipoise_special::Student;

/// The weighted differences of the pairs: their mean and the sum of squares around it.
#[derive(Default)]
pub struct Differences {
    weight: f64,
    mean: Vec<f64>,
    squares: Vec<f64>,
    batch_mean: Vec<f64>,
    batch_squares: Vec<f64>,
}

impl Differences {
    /// Forgets everything.
    pub fn start(&mut self, stride: usize) {
        self.weight = 0.0;
        for sums in [&mut self.mean, &mut self.squares] {
            sums.clear();
            sums.resize(stride, 0.0);
        }
    }

    /// Adds links, in two passes over them; batches are put together after Chan, Golub and
    /// `LeVeque` (1983, American Statistician 37).
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
        // Of zeros: sums of the differences as they are.
        batch.sums(
            instructions,
            &self.batch_squares,
            false,
            &mut self.batch_mean,
        );
        for sum in &mut self.batch_mean {
            *sum /= weight;
        }
        batch.sums(
            instructions,
            &self.batch_mean,
            true,
            &mut self.batch_squares,
        );
        let before = self.weight;
        self.weight += weight;
        for column in 0..stride {
            let apart = self.batch_mean[column] - self.mean[column];
            self.squares[column] +=
                self.batch_squares[column] + apart * apart * (before * weight / self.weight);
            self.mean[column] += if before > 0.0 {
                apart * (weight / self.weight)
            } else {
                apart
            };
        }
    }

    /// The p-values of the paired tests: the variance is divided by the weight, and the degrees of
    /// freedom are the weight minus 1.
    pub fn p_values(&self, columns: usize, matched: f64, into: &mut Vec<f64>) {
        let student = Student::new(matched - 1.0);
        for column in 0..columns {
            let (mean, squares) = (self.mean[column], self.squares[column]);
            into.push(if mean == 0.0 && squares == 0.0 {
                1.0
            } else {
                student.two_sided(mean * self.weight / squares.sqrt())
            });
        }
    }
}

/// Some links and the covariates of their points.
struct Batch<'a> {
    covariates: &'a Covariates,
    links: &'a [Link],
}

impl Batch<'_> {
    /// Sums of the weighted differences less `shift`, or of their squares.
    fn sums(&self, kind: Instructions, shift: &[f64], squared: bool, into: &mut [f64]) {
        assert!(kind.available());
        match kind {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the check above found AVX-512.
            Instructions::Avx512 => unsafe { self.with_avx512(shift, squared, into) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the check above found AVX2.
            Instructions::Avx2 => unsafe { self.with_avx2(shift, squared, into) },
            _ => self.by_parts(shift, squared, into),
        }
    }

    /// # Safety
    /// The processor must have AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn with_avx512(&self, shift: &[f64], squared: bool, into: &mut [f64]) {
        self.by_parts(shift, squared, into);
    }

    /// # Safety
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2(&self, shift: &[f64], squared: bool, into: &mut [f64]) {
        self.by_parts(shift, squared, into);
    }

    /// The same for every width: each column is a separate sum, in the order of the links.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    fn by_parts(&self, shift: &[f64], squared: bool, into: &mut [f64]) {
        for (part, into) in into.chunks_exact_mut(PAD).enumerate() {
            let columns = part * PAD..(part + 1) * PAD;
            let mut sums = [0.0; PAD];
            let mut shifts = [0.0; PAD];
            shifts.copy_from_slice(&shift[columns.clone()]);
            for link in self.links {
                let treated = &self.covariates.of(link.treated as usize)[columns.clone()];
                let control = &self.covariates.of(link.control as usize)[columns.clone()];
                for column in 0..PAD {
                    let apart = treated[column] - control[column] - shifts[column];
                    sums[column] += link.weight * if squared { apart * apart } else { apart };
                }
            }
            into.copy_from_slice(&sums);
        }
    }
}

/// The p-values of Welch's tests of the matched treated against the matched controls.
///
/// `weight` is the total weight of each point's pairs, `matched` that of all pairs; a variance is
/// divided by that minus 1. If neither arm varies, different means have a p-value of 0; R's is NaN.
pub fn welch(
    covariates: &Covariates,
    controls: usize,
    weight: &[f64],
    matched: f64,
    rules: Rules,
    into: &mut Vec<f64>,
) {
    let points = weight.len();
    for column in 0..covariates.columns {
        let (mean_control, control) = arm(covariates, column, 0..controls, weight);
        let (mean_treated, treated) = arm(covariates, column, controls..points, weight);
        let [control, treated] =
            [control, treated].map(|squares| squares / (matched - 1.0) / matched);
        let variance = treated + control;
        let apart = mean_treated - mean_control;
        let freedom =
            variance * variance * (matched - 1.0) / (treated * treated + control * control);
        into.push(match (variance == 0.0, apart == 0.0) {
            (true, true) => 1.0,
            (true, false) if rules == Rules::Correct => 0.0,
            _ => Student::new(freedom).two_sided(apart / variance.sqrt()),
        });
    }
}

/// The weighted mean of a column over some points, and the sum of squares around it.
fn arm(
    covariates: &Covariates,
    column: usize,
    points: std::ops::Range<usize>,
    weight: &[f64],
) -> (f64, f64) {
    let values = || {
        points
            .clone()
            .filter(|&point| weight[point] > 0.0)
            .map(|point| (weight[point], covariates.of(point)[column]))
    };
    // Relative to one of the values, so that a constant has no rounding error.
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
