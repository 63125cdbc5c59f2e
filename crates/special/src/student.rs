//! Student's t distribution: two-sided p-values, to a relative error of about 1e-13, and quantiles.
//!
//! For ν degrees of freedom, P(|T| ≥ t) = `I_x(ν/2, 1/2)` with x = ν/(ν + t²). I is the regularised
//! incomplete beta function (Abramowitz and Stegun 26.7.1).

use std::f64::consts::PI;

/// Replaces a part of the continued fraction that is nearly 0, because the part is a divisor.
const TINY: f64 = 1e-300;
/// Relative change below which the continued fraction has converged.
const NEGLIGIBLE_CHANGE: f64 = 1e-16;
/// From this ratio on, r² + 1 = r² in floating point.
const LARGE_RATIO: f64 = 1e100;
/// Maximum number of terms of the continued fraction.
const MAX_STEPS: usize = 10_000;
/// Smallest a for which the series of Γ(a + 1/2) / Γ(a) has full precision.
const MIN_SERIES_ARGUMENT: f64 = 64.0;

/// Student's t distribution.
pub struct Student {
    /// ν: the degrees of freedom.
    degrees_of_freedom: f64,
    /// 1 / B(ν/2, 1/2).
    inverse_beta: f64,
}

impl Student {
    /// Returns the distribution with these degrees of freedom, which should be positive.
    #[must_use]
    pub fn new(degrees_of_freedom: f64) -> Self {
        Self {
            degrees_of_freedom,
            inverse_beta: gamma_ratio(degrees_of_freedom / 2.0) / PI.sqrt(),
        }
    }

    /// Returns the two-sided p-value P(|T| ≥ |t|); NaN if the degrees of freedom are not positive.
    #[must_use]
    pub fn two_sided(&self, t: f64) -> f64 {
        let nu = self.degrees_of_freedom;
        if t.is_nan() || nu.is_nan() || nu <= 0.0 {
            return f64::NAN;
        }
        let t = t.abs();
        if t == 0.0 {
            return 1.0;
        }
        let ratio = t / nu.sqrt();
        if ratio.is_infinite() {
            return 0.0;
        }
        // `near` is x, `far` is 1 - x, and `root` is √(1 - x). Large numbers are not squared.
        let root = ratio / ratio.hypot(1.0);
        let (a, b) = (nu / 2.0, 0.5);
        let (near, far) = (1.0 / (1.0 + ratio * ratio), root * root);
        let log_x = if ratio > LARGE_RATIO {
            -2.0 * ratio.ln()
        } else {
            -(ratio * ratio).ln_1p()
        };
        let front = (a * log_x).exp() * root * self.inverse_beta;
        if a * far > b * near {
            front * fraction(a, b, near, far)
        } else {
            (1.0 - front * fraction(b, a, far, near)).max(0.0)
        }
    }

    /// Returns the quantile, by bisection: the value below which T lies with this probability. NaN
    /// if the probability is not from 0 to 1 or the degrees of freedom are not positive.
    #[must_use]
    pub fn quantile(&self, probability: f64) -> f64 {
        if !(0.0..=1.0).contains(&probability) || self.two_sided(1.0).is_nan() {
            return f64::NAN;
        }
        if probability < 0.5 {
            return -self.upper_quantile(2.0 * probability);
        }
        self.upper_quantile(2.0 * (1.0 - probability))
    }

    /// Returns q ≥ 0 for which P(|T| > q) is `outside`.
    fn upper_quantile(&self, outside: f64) -> f64 {
        if outside <= 0.0 {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (0.0, 1.0_f64);
        while high.is_finite() && self.two_sided(high) > outside {
            (low, high) = (high, 2.0 * high);
        }
        loop {
            let middle = low + 0.5 * (high - low);
            if middle <= low || middle >= high {
                return middle;
            }
            if self.two_sided(middle) > outside {
                low = middle;
            } else {
                high = middle;
            }
        }
    }
}

/// Returns Γ(a + 1/2) / Γ(a). A recursion leads from a small a to a large a, for which a series
/// holds.
fn gamma_ratio(a: f64) -> f64 {
    let mut argument = a;
    let mut factor = 1.0;
    while argument < MIN_SERIES_ARGUMENT {
        factor *= argument / (argument + 0.5);
        argument += 1.0;
    }
    let inverse = 1.0 / argument;
    let series = [
        -1.0 / 8.0,
        1.0 / 128.0,
        5.0 / 1024.0,
        -21.0 / 32_768.0,
        -399.0 / 262_144.0,
        869.0 / 4_194_304.0,
        39_325.0 / 33_554_432.0,
    ];
    let sum = series
        .iter()
        .rev()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * inverse);
    factor * argument.sqrt() * (1.0 + sum)
}

/// Returns the continued fraction F of `I_x(a, b)` = F xᵃ yᵇ / B(a, b), with y = 1 - x, for x below
/// the mean (`DiDonato` and Morris 1992, ACM Transactions on Mathematical Software 18, 360-373,
/// equation 9).
#[allow(clippy::many_single_char_names)] // The names of the article.
fn fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let lambda = a * y - b * x;
    // Lentz's method.
    let mut fraction = nonzero(a / (a + 1.0) * (lambda + 1.0));
    let (mut c, mut d) = (fraction, 0.0);
    for step in 1..MAX_STEPS {
        let n = step as f64;
        let odd = a + 2.0 * n - 1.0;
        let numerator = (a + n - 1.0) / odd * ((a + b + n - 1.0) / odd) * n * (b - n) * x * x;
        let denominator =
            n + n * (b - n) * x / odd + (a + n) / (odd + 2.0) * (lambda + 1.0 + n * (1.0 + y));
        d = 1.0 / nonzero(denominator + numerator * d);
        c = nonzero(denominator + numerator / c);
        let change = c * d;
        fraction *= change;
        if (change - 1.0).abs() < NEGLIGIBLE_CHANGE {
            break;
        }
    }
    1.0 / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_published_tables() {
        for (probability, freedom, expected) in [
            (0.975, 1.0, 12.706_204_736_174_7),
            (0.975, 2.0, 4.302_652_729_749_46),
            (0.995, 3.0, 5.840_909_309_733_36),
            (0.975, 30.0, 2.042_272_456_301_24),
            (0.9, 2.5, 1.730_250_928_807_18),
        ] {
            let quantile = Student::new(freedom).quantile(probability);
            if freedom >= 1.0 {
                assert!(
                    (quantile / expected - 1.0).abs() < 1e-12,
                    "{freedom}: {quantile}"
                );
            }
            let upper_tail = 0.5 * Student::new(freedom).two_sided(quantile);
            assert!((upper_tail / (1.0 - probability) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn quantiles_are_symmetric_and_reach_infinity() {
        let student = Student::new(4.0);
        assert!((student.quantile(0.1) + student.quantile(0.9)).abs() < 1e-14);
        assert!(student.quantile(0.5).abs() < 1e-12);
        assert!(student.quantile(1.0) > f64::MAX);
        assert!(student.quantile(0.0) < f64::MIN);
        assert!(student.quantile(f64::NAN).is_nan());
        assert!(Student::new(0.0).quantile(0.9).is_nan());
    }
}
