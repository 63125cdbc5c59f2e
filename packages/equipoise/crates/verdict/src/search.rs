//! Numerical bisection, to the resolution of log ratios.

/// Width at which a bisection stops: finer than the rounding of a difference of two logarithms.
const RESOLUTION: f64 = 1e-15;

/// The last point, on the way from `from` to `to`, at which `holds` is true. `holds` must be true
/// at `from` and false at `to`, and change only once.
pub fn last_that_holds(from: f64, to: f64, mut holds: impl FnMut(f64) -> bool) -> f64 {
    let (mut holding, mut failing) = (from, to);
    loop {
        let middle = 0.5 * (holding + failing);
        if (failing - holding).abs() <= RESOLUTION
            || middle <= holding.min(failing)
            || middle >= holding.max(failing)
        {
            return holding;
        }
        if holds(middle) {
            holding = middle;
        } else {
            failing = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_found_to_full_precision_from_both_sides() {
        let step = 0.123_456_789;
        let from_below = last_that_holds(-5.0, 5.0, |x| x < step);
        let from_above = last_that_holds(5.0, -5.0, |x| x > step);
        assert!(from_below < step && step - from_below <= 1e-15);
        assert!(from_above > step && from_above - step <= 1e-15);
    }
}
