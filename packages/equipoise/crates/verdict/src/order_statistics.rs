//! The median of values that may be infinite, and the MAD scale: a robust standard deviation.

/// Standard deviation of a normal distribution over its median absolute deviation: 1 / Φ⁻¹(3/4).
const NORMAL_CONSISTENCY: f64 = 1.4826;

/// The median; `None` without values. It is 0 if the two middle values are −∞ and ∞.
///
/// The function reorders `values`, none of which may be NaN.
pub fn median(values: &mut [f64]) -> Option<f64> {
    let count = values.len();
    if count == 0 {
        return None;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(count / 2, f64::total_cmp);
    if count % 2 == 1 {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    let sum = lower + upper;
    Some(if sum.is_nan() { 0.0 } else { 0.5 * sum })
}

/// The MAD scale: 1.4826 times the median absolute deviation from `centre`; 0 if it is unknown.
pub fn mad_scale(values: &[f64], centre: f64, scratch: &mut Vec<f64>) -> f64 {
    if !centre.is_finite() {
        return 0.0;
    }
    scratch.clear();
    scratch.extend(values.iter().map(|value| (value - centre).abs()));
    match median(scratch) {
        Some(deviation) if deviation.is_finite() => NORMAL_CONSISTENCY * deviation,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 8.0]), Some(3.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn infinities_are_extremes() {
        let infinity = f64::INFINITY;
        assert_eq!(median(&mut [infinity, 1.0, -infinity]), Some(1.0));
        assert_eq!(median(&mut [infinity, infinity, 1.0]), Some(infinity));
        assert_eq!(median(&mut [infinity, -infinity]), Some(0.0));
    }

    #[test]
    fn the_scale_is_the_scaled_median_absolute_deviation() {
        let mut scratch = Vec::new();
        let measured = mad_scale(&[1.0, 2.0, 3.0, 4.0, 100.0], 3.0, &mut scratch);
        assert!((measured - 1.4826).abs() < 1e-15);
        assert!(mad_scale(&[1.0, 2.0], f64::INFINITY, &mut scratch).abs() < f64::MIN_POSITIVE);
    }
}
