//! A point with its values, and comparisons of values.

use std::cmp::Ordering;

use crate::options::Direction;

/// A point of the population, and the values of the function there.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The parameters.
    pub point: Vec<f64>,
    /// Value of each criterion, the most important first.
    pub values: Vec<f64>,
}

/// Compares the values of two candidates; `Less` means that `left` is better. The first criterion
/// that differs decides. NaN is worse than every number and equal to NaN.
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

/// Whether any criterion improved by more than the tolerance, or from NaN to a number.
pub fn is_improvement(new: &[f64], old: &[f64], direction: Direction, tolerance: f64) -> bool {
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
    fn nan_is_worse_than_every_number_in_both_directions() {
        for direction in [Minimize, Maximize] {
            let nan = [f64::NAN];
            for value in [f64::NEG_INFINITY, 0.0, f64::INFINITY] {
                assert_eq!(compare(&nan, &[value], direction), Ordering::Greater);
                assert!(is_improvement(&[value], &nan, direction, 1.0));
            }
            assert_eq!(compare(&nan, &nan, direction), Ordering::Equal);
        }
    }

    #[test]
    fn an_improvement_above_the_tolerance_in_any_criterion_counts() {
        assert!(!is_improvement(&[0.9995], &[1.0], Minimize, 1e-3));
        assert!(is_improvement(&[0.9985], &[1.0], Minimize, 1e-3));
        assert!(is_improvement(&[0.9995, 0.0], &[1.0, 1.0], Minimize, 1e-3));
        assert!(is_improvement(&[1.1], &[1.0], Maximize, 1e-3));
        assert!(!is_improvement(&[0.9], &[1.0], Maximize, 1e-3));
    }
}
