//! Numerical bisection, to the resolution of log ratios.

/// Width at which a bisection stops: finer than the rounding of a difference of two logarithms.
const RESOLUTION: f64 = 1e-15;

/// The point nearest to `no` at which `holds` is true, given that it is true at `yes`, false at
/// `no`, and changes once in between.
pub fn last_that_holds(yes: f64, no: f64, mut holds: impl FnMut(f64) -> bool) -> f64 {
    let (mut yes, mut no) = (yes, no);
    loop {
        let middle = 0.5 * (yes + no);
        if (no - yes).abs() <= RESOLUTION || middle <= yes.min(no) || middle >= yes.max(no) {
            return yes;
        }
        if holds(middle) {
            yes = middle;
        } else {
            no = middle;
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
