//! The list of candidate weights: the same in every run and for every algorithm.

use crate::random::Draws;

const SEED: u64 = 2006;
/// As `GenMatch` had them in 2006: whole numbers from 1 to 1000.
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

#[cfg(test)]
mod tests {
    use super::weights;

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
