//! Means of matched covariates and the p-values of their t-tests.

use crate::fitness::covariates::Covariates;
use crate::fitness::links::Link;
use crate::fitness::student::Student;

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
    pub fn add(&mut self, covariates: &Covariates, links: &[Link]) {
        let weight: f64 = links.iter().map(|link| link.weight).sum();
        if weight <= 0.0 {
            return;
        }
        let stride = covariates.stride;
        for sums in [&mut self.batch_mean, &mut self.batch_squares] {
            sums.clear();
            sums.resize(stride, 0.0);
        }
        sum_of_differences(covariates, links, &mut self.batch_mean);
        for sum in &mut self.batch_mean {
            *sum /= weight;
        }
        sum_of_squares(covariates, links, &self.batch_mean, &mut self.batch_squares);
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

    /// The p-values of the paired tests: the variance is divided by the weight, of which the
    /// degrees of freedom are one less.
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

/// Sums of the weighted differences.
fn sum_of_differences(covariates: &Covariates, links: &[Link], sums: &mut [f64]) {
    for link in links {
        let treated = covariates.of(link.treated as usize);
        let control = covariates.of(link.control as usize);
        for ((sum, treated), control) in sums.iter_mut().zip(treated).zip(control) {
            *sum += link.weight * (treated - control);
        }
    }
}

/// Sums of the weighted squares around the mean.
fn sum_of_squares(covariates: &Covariates, links: &[Link], mean: &[f64], sums: &mut [f64]) {
    for link in links {
        let treated = covariates.of(link.treated as usize);
        let control = covariates.of(link.control as usize);
        let values = treated.iter().zip(control).zip(mean);
        for (sum, ((treated, control), mean)) in sums.iter_mut().zip(values) {
            let apart = treated - control - mean;
            *sum += link.weight * (apart * apart);
        }
    }
}

/// The p-values of Welch's tests of the matched treated against the matched controls.
///
/// `weight` is what each point's pairs weigh together, `matched` what all do; a variance is divided
/// by one less.
pub fn welch(
    covariates: &Covariates,
    controls: usize,
    weight: &[f64],
    matched: f64,
    into: &mut Vec<f64>,
) {
    let points = weight.len();
    let side = |range: std::ops::Range<usize>, column: usize| {
        let values = || {
            range
                .clone()
                .filter(|&point| weight[point] > 0.0)
                .map(|point| (weight[point], covariates.of(point)[column]))
        };
        let total: f64 = values().map(|(weight, _)| weight).sum();
        let mean = values().map(|(weight, value)| weight * value).sum::<f64>() / total;
        let squares: f64 = values()
            .map(|(weight, value)| weight * (value - mean).powi(2))
            .sum();
        (mean, squares / (matched - 1.0) / matched)
    };
    for column in 0..covariates.columns {
        let (mean_control, control) = side(0..controls, column);
        let (mean_treated, treated) = side(controls..points, column);
        let variance = treated + control;
        let freedom =
            variance * variance * (matched - 1.0) / (treated * treated + control * control);
        let t = (mean_treated - mean_control) / variance.sqrt();
        into.push(Student::new(freedom).two_sided(t));
    }
}
