//! A point with its values, and the comparison of two points.

use std::cmp::Ordering;

use crate::options::Direction;

/// A point and its value, or several values that are compared in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Individual {
    /// The parameters.
    pub point: Vec<f64>,
    /// The criteria, the most important first.
    pub values: Vec<f64>,
}

/// Lexically: the first criterion that differs decides. NaN is worse than every number, and as
/// good as another NaN. Less is better.
pub fn compare(left: &[f64], right: &[f64], direction: Direction) -> Ordering {
    left.iter()
        .zip(right)
        .map(|(&left, &right)| compare_one(left, right, direction))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn compare_one(left: f64, right: f64, direction: Direction) -> Ordering {
    match (left.partial_cmp(&right), direction) {
        (Some(order), Direction::Minimize) => order,
        (Some(order), Direction::Maximize) => order.reverse(),
        (None, _) => left.is_nan().cmp(&right.is_nan()),
    }
}

/// Whether any criterion is better by more than the tolerance; a number is better than NaN.
pub fn improved(new: &[f64], old: &[f64], direction: Direction, tolerance: f64) -> bool {
    new.iter().zip(old).any(|(&new, &old)| {
        let gain = match direction {
            Direction::Minimize => old - new,
            Direction::Maximize => new - old,
        };
        gain > tolerance || (old.is_nan() && !new.is_nan())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Maximize, Minimize};

    #[test]
    fn the_first_criterion_that_differs_decides() {
        let (left, right) = ([1.0, 2.0, 9.0], [1.0, 3.0, 0.0]);
        assert_eq!(compare(&left, &right, Minimize), Ordering::Less);
        assert_eq!(compare(&left, &right, Maximize), Ordering::Greater);
        assert_eq!(compare(&left, &left, Maximize), Ordering::Equal);
    }

    #[test]
    fn what_is_no_number_is_worst_whichever_way() {
        for direction in [Minimize, Maximize] {
            let nan = [f64::NAN];
            for value in [f64::NEG_INFINITY, 0.0, f64::INFINITY] {
                assert_eq!(compare(&nan, &[value], direction), Ordering::Greater);
                assert!(improved(&[value], &nan, direction, 1.0));
            }
            assert_eq!(compare(&nan, &nan, direction), Ordering::Equal);
        }
    }

    #[test]
    fn a_gain_counts_when_it_exceeds_the_tolerance_in_any_criterion() {
        assert!(!improved(&[0.9995], &[1.0], Minimize, 1e-3));
        assert!(improved(&[0.9985], &[1.0], Minimize, 1e-3));
        assert!(improved(&[0.9995, 0.0], &[1.0, 1.0], Minimize, 1e-3));
        assert!(improved(&[1.1], &[1.0], Maximize, 1e-3));
        assert!(!improved(&[0.9], &[1.0], Maximize, 1e-3));
    }
}
