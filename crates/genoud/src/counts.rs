//! How many individuals each operator makes in a generation.

/// How many individuals of the next generation come from each operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OperatorCounts {
    /// Operators 1 to 9; the first, cloning, is what the others leave beside the best.
    pub each: [usize; 9],
    /// The population, grown where the operators need it.
    pub population: usize,
}

const SIMPLE_CROSSOVER: usize = 5;
const HEURISTIC_CROSSOVER: usize = 7;

impl OperatorCounts {
    /// Shares of the weights, of the population without two; crossovers that make two children
    /// at once get an even number. None if the weights are unusable.
    #[must_use]
    pub fn new(weights: &[f64; 9], population: usize) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let usable = weights
            .iter()
            .all(|weight| weight.is_finite() && *weight >= 0.0);
        if !usable || total <= 0.0 || !total.is_finite() || population < 2 {
            return None;
        }
        let mut each = [0; 9];
        for (count, weight) in each.iter_mut().zip(weights) {
            let share = (weight / total * (population - 2) as f64).round();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            {
                *count = share as usize;
            }
        }
        for place in [SIMPLE_CROSSOVER, HEURISTIC_CROSSOVER] {
            each[place] += each[place] % 2;
        }
        let children: usize = each[1..].iter().sum();
        let mut population = population.max(children + 1);
        population += population % 2;
        each[0] = population - children - 1;
        Some(Self { each, population })
    }

    /// How many children the operators 2 to 9 make.
    #[must_use]
    pub fn children(&self) -> usize {
        self.each[1..].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: [f64; 9] = [50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 0.0];

    #[test]
    fn the_published_examples_come_out() {
        let each = |population| OperatorCounts::new(&DEFAULT, population).unwrap().each;
        assert_eq!(each(1000), [122, 125, 125, 125, 125, 126, 125, 126, 0]);
        assert_eq!(each(16), [1, 2, 2, 2, 2, 2, 2, 2, 0]);
        assert_eq!(each(100), [15, 12, 12, 12, 12, 12, 12, 12, 0]);
    }

    #[test]
    fn the_population_grows_where_the_operators_need_it() {
        let weights = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        let counts = OperatorCounts::new(&weights, 8).unwrap();
        assert_eq!(counts.children(), 8);
        assert_eq!(counts.population, 10);
        assert_eq!(counts.each[0], 1);
    }

    #[test]
    fn weights_that_say_nothing_are_refused() {
        assert!(OperatorCounts::new(&[0.0; 9], 100).is_none());
        assert!(OperatorCounts::new(&[f64::NAN; 9], 100).is_none());
        let mut negative = DEFAULT;
        negative[3] = -1.0;
        assert!(OperatorCounts::new(&negative, 100).is_none());
    }
}
