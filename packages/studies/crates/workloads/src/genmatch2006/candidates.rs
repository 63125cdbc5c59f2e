//! The candidates of a search. Each has a weight for every covariate. All runs have the same list.

use crate::problem::Problem;
use equipoise_random::Draws;

use super::data::COVARIATES;

/// Seed of the list of candidates.
const SEED: u64 = 2006;
/// Largest weight of `GenMatch` in 2006. Its weights were whole numbers from 1.
const MAX_WEIGHT: f64 = 1000.0;

/// Draws candidates with a weight for every column. A longer list begins with the shorter list.
pub fn weights(candidates: u64, columns: usize) -> Vec<Vec<f64>> {
    let draws = Draws::from_seed(SEED);
    let columns = columns as u64;
    (0..candidates)
        .map(|candidate| {
            let indices = candidate * columns..(candidate + 1) * columns;
            let weight = |index| draws.in_range_at(index, 1.0..MAX_WEIGHT + 1.0).floor();
            indices.map(weight).collect()
        })
        .collect()
}

/// Parses the weights of one candidate: positive numbers with commas between.
pub fn parse(text: &str) -> Result<Vec<f64>, Problem> {
    let parse_weight = |number: &str| -> Option<f64> {
        let weight: f64 = number.trim().parse().ok()?;
        (weight.is_finite() && weight > 0.0).then_some(weight)
    };
    let weights: Option<Vec<f64>> = text.split(',').map(parse_weight).collect();
    let columns = COVARIATES.len();
    weights
        .filter(|weights| weights.len() == columns)
        .ok_or_else(|| {
            Problem::usage(format!(
                "--weights: `{text}` is not {columns} positive numbers with commas between them"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::{parse, weights};

    #[test]
    fn ten_positive_weights_are_accepted() {
        let text = "1,2,3,4,5,6,7,8,9,10.5";
        assert_eq!(parse(text).unwrap()[8..], [9.0, 10.5]);
        for wrong in ["", "1,2", &text.replace("10.5", "0"), &format!("{text},x")] {
            assert_eq!(parse(wrong).expect_err(wrong).exit_status(), 2);
        }
    }

    #[test]
    fn weights_are_whole_numbers_spread_from_1_to_1000() {
        let all = weights(2000, 10).concat();
        assert!(all.iter().all(|weight| weight.fract() == 0.0));
        assert!(all.iter().all(|weight| (1.0..=1000.0).contains(weight)));
        assert!(all.iter().any(|&weight| weight < 11.0) && all.iter().any(|&w| w > 990.0));
    }

    #[test]
    fn a_longer_list_starts_with_the_shorter_list() {
        assert_eq!(weights(9, 10)[..4], weights(4, 10)[..]);
    }
}
