//! P-values of the two-sided Kolmogorov-Smirnov test of two samples.

use std::f64::consts::{FRAC_PI_2, PI};

/// Product of the two sample sizes below which the exact p-value is computed (as in R since 4.2).
pub const EXACT_BELOW: u64 = 10_000;
/// Number of terms of the series for small distances in R.
const R_TERMS: u32 = 1;
/// Number of terms of this series by the correct rules.
const TERMS: u32 = 10;
/// R's series for large distances ends with the first term that is at most this number.
const R_LAST_TERM: f64 = 1e-6;

/// Returns P(K ≥ x) of Kolmogorov's distribution, from the shorter of its two series. If `as_in_r`,
/// the series end where they end in R 4.2.
#[must_use]
pub fn asymptotic(x: f64, as_in_r: bool) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return if x.is_nan() { x } else { 1.0 };
    }
    if x < 1.0 {
        let exponent = -(FRAC_PI_2 * FRAC_PI_2) / (2.0 * x * x);
        let terms = if as_in_r { R_TERMS } else { TERMS };
        let below: f64 = (0..terms)
            .map(|term| {
                let k = f64::from(2 * term + 1);
                (k * k * exponent).exp()
            })
            .sum();
        return 1.0 - (2.0 * PI).sqrt() / x * below;
    }
    let last_term = if as_in_r { R_LAST_TERM } else { 0.0 };
    let mut above = 0.0;
    let mut sign = 1.0;
    for k in 1_u32.. {
        let term = 2.0 * (-2.0 * (f64::from(k) * x).powi(2)).exp();
        above += sign * term;
        if term <= last_term {
            break;
        }
        sign = -sign;
    }
    above
}

/// Returns the p-value of the distance `observed` / (n m) of n treated rows and m controls, given
/// their ties. A path is one order of all rows, with the distance |i m - j n| after i treated rows
/// and j controls. The distance counts only where a group of equal values ends (Schröer and
/// Trenkler 1995, Computational Statistics & Data Analysis 20, 185-202). `ends` has the number of
/// rows up to the end of each group. The p-value is the probability of the paths whose distance
/// reaches `observed`. These paths are removed there, so that small p-values keep their digits.
#[must_use]
pub fn exact(observed: u64, treated: usize, controls: usize, ends: &[usize]) -> f64 {
    if observed == 0 {
        return 1.0;
    }
    let mut ends = ends.iter().copied().peekable();
    // Probability of the paths with i treated rows so far.
    let mut paths = vec![0.0; treated + 2];
    paths[0] = 1.0;
    let mut p_value = 0.0;
    // `taken` is the number of rows of the paths so far.
    for taken in 1..=treated + controls {
        let remaining = (treated + controls - taken + 1) as f64;
        let (low, high) = (taken.saturating_sub(controls), taken.min(treated));
        // The next row of a path is treated (i grows by 1) or a control (i stays). The loop
        // overwrites the probabilities, so it goes from high to low i.
        for i in (low..=high).rev() {
            let from_control = if i < taken && taken - 1 - i < controls {
                paths[i] * (controls - (taken - 1 - i)) as f64
            } else {
                0.0
            };
            let from_treated = if i > 0 {
                paths[i - 1] * (treated - (i - 1)) as f64
            } else {
                0.0
            };
            paths[i] = (from_control + from_treated) / remaining;
        }
        if low > 0 {
            paths[low - 1] = 0.0;
        }
        if ends.peek() == Some(&taken) {
            ends.next();
            for (i, path) in paths.iter_mut().enumerate().take(high + 1).skip(low) {
                if (i * controls).abs_diff((taken - i) * treated) as u64 >= observed {
                    p_value += *path;
                    *path = 0.0;
                }
            }
        }
    }
    f64::min(p_value, 1.0)
}
