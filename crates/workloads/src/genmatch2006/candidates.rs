//! The list of candidate weights: the same in every run and for every algorithm.

use crate::problem::Problem;
use equipoise_random::Draws;

use super::data::COVARIATES;

const SEED: u64 = 2006;
/// Range of the weights of `GenMatch` in 2006: whole numbers from 1 to 1000.
const LARGEST: f64 = 1000.0;

/// So many candidates, each with a weight for every column. A longer list starts with the
/// shorter one.
pub fn weights(candidates: u64, columns: usize) -> Vec<Vec<f64>> {
    let draws = Draws::new(SEED);
    let columns = columns as u64;
    (0..candidates)
        .map(|candidate| {
            (0..columns)
                .map(|column| {
                    draws
                        .within(candidate * columns + column, 1.0..LARGEST + 1.0)
                        .floor()
                })
                .collect()
        })
        .collect()
}

/// The weights of one candidate, with commas between them.
///
/// # Errors
/// If they are not as many positive numbers as there are columns.
pub fn parse(words: &str) -> Result<Vec<f64>, Problem> {
    let weights: Vec<f64> = words
        .split(',')
        .filter_map(|word| word.trim().parse().ok())
        .filter(|weight: &f64| weight.is_finite() && *weight > 0.0)
        .collect();
    if weights.len() == COVARIATES.len() && words.split(',').count() == COVARIATES.len() {
        Ok(weights)
    } else {
        Err(Problem::usage(format!(
            "--weights: `{words}` is not {} positive numbers with commas between them",
            COVARIATES.len()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, weights};

    #[test]
    fn weights_are_read_if_there_are_ten_positive_ones() {
        let words = "1,2,3,4,5,6,7,8,9,10.5";
        assert_eq!(parse(words).unwrap()[8..], [9.0, 10.5]);
        for wrong in [
            "",
            "1,2",
            &words.replace("10.5", "0"),
            &format!("{words},x"),
        ] {
            assert_eq!(parse(wrong).expect_err(wrong).exit_status(), 2);
        }
    }

    #[test]
    fn weights_are_whole_numbers_from_1_to_1000_that_reach_both_ends() {
        let all = weights(2000, 10).concat();
        assert!(all.iter().all(|weight| weight.fract() == 0.0));
        assert!(all.iter().all(|weight| (1.0..=1000.0).contains(weight)));
        assert!(all.iter().any(|&weight| weight < 11.0) && all.iter().any(|&w| w > 990.0));
    }

    #[test]
    fn a_longer_list_starts_with_the_shorter_one() {
        assert_eq!(weights(9, 10)[..4], weights(4, 10)[..]);
    }
}
