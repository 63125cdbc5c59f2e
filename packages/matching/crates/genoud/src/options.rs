//! The options of a search, and the number of candidates that each operator makes.

use std::fmt;

use crate::domain::{Boundary, Domain};
use crate::random::Generator;

/// Whether small or large values are better.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// Smaller values are better.
    Minimize,
    /// Larger values are better.
    Maximize,
}

/// The settings of a search, with the names of Mebane & Sekhon (2011), section 3.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings, which are booleans in the paper too"
)]
pub struct Options {
    /// The box of points to search.
    pub domain: Domain,
    /// How strictly the bounds of the box are enforced.
    pub boundary: Boundary,
    /// Whether small or large values are better.
    pub direction: Direction,
    /// Number of candidates in a generation, which may grow ([`OperatorCounts`]).
    pub population: usize,
    /// Limit of the number of generations after the random one.
    pub generations: usize,
    /// Whether the search ends at `generations` even if it still improves.
    pub hard_generation_limit: bool,
    /// The search ends after more generations than this without improvement.
    pub wait_generations: usize,
    /// Smallest improvement of a criterion that counts.
    pub solution_tolerance: f64,
    /// Points of the first generation, inside the box; random points fill the rest.
    pub starting_values: Vec<Vec<f64>>,
    /// Weights of the operators 1 to 9.
    pub operators: [f64; 9],
    /// Share of the polished point in a child of operator 9; `None` for a random share.
    pub mix: Option<f64>,
    /// Whether a local optimiser polishes the best candidate of each generation.
    pub polish: bool,
    /// Number of generations before the first polishing.
    pub burn_in: usize,
    /// Whether a generation counts towards `wait_generations` only if its gradient is small.
    pub gradient_check: bool,
    /// Whether values are remembered, so that no point is evaluated twice.
    pub memory: bool,
    /// The random number generator.
    pub generator: Generator,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// A message about options or answers that cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SearchError(pub String);

impl fmt::Display for SearchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SearchError {}

// Indices of three operators: operator n has the index n - 1.
const SIMPLE_CROSSOVER: usize = 5;
const HEURISTIC_CROSSOVER: usize = 7;
pub(crate) const LOCAL_MINIMUM: usize = 8;

impl Options {
    /// Checks the options, and returns the number of candidates from each operator.
    pub(crate) fn operator_counts(&self) -> Result<OperatorCounts, SearchError> {
        let Some(counts) = OperatorCounts::new(&self.operators, self.population) else {
            return Err(SearchError(format!(
                "a population of {} and weights {:?} of the operators: use a population of 2 or \
                 more, and weights of 0 or more, not all 0",
                self.population, self.operators
            )));
        };
        if self.generations == 0 {
            return Err(SearchError("generations must be at least 1".into()));
        }
        if self.solution_tolerance.is_nan() || self.solution_tolerance < 0.0 {
            return Err(SearchError(format!(
                "the solution tolerance must be 0 or more, not {}",
                self.solution_tolerance
            )));
        }
        if let Some(mix) = self.mix.filter(|share| !(0.0..=1.0).contains(share)) {
            let message = format!("the mix of operator 9 must be between 0 and 1, not {mix}");
            return Err(SearchError(message));
        }
        if self.domain.is_integer() && counts.by_operator[LOCAL_MINIMUM] > 0 {
            let message = "operator 9 needs real parameters: set its weight to 0";
            return Err(SearchError(message.into()));
        }
        if self.starting_values.len() > counts.population {
            return Err(SearchError(format!(
                "{} starting values are too many for a population of {}",
                self.starting_values.len(),
                counts.population
            )));
        }
        for (row, point) in self.starting_values.iter().enumerate() {
            if point.len() != self.domain.parameter_count() {
                return Err(SearchError(format!(
                    "starting value {row} has {} parameters, not {}",
                    point.len(),
                    self.domain.parameter_count()
                )));
            }
            if !self.domain.contains(point) {
                return Err(SearchError(format!(
                    "starting value {row}, {point:?}, lies outside the bounds"
                )));
            }
        }
        Ok(counts)
    }
}

/// Number of candidates that each operator makes in a generation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OperatorCounts {
    /// Numbers for the operators 1 to 9. Operator 1, cloning, fills the rest of the generation.
    pub by_operator: [usize; 9],
    /// Number of candidates of a generation, which is larger if the operators need it.
    pub population: usize,
}

impl OperatorCounts {
    /// Divides the population minus two among the operators by their weights. The operators 6 and
    /// 8 get an even number. Returns `None` if the weights or the population are invalid.
    #[must_use]
    pub fn new(weights: &[f64; 9], population: usize) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let is_usable = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if !weights.iter().all(is_usable) || total <= 0.0 || !total.is_finite() || population < 2 {
            return None;
        }
        let mut by_operator = [0; 9];
        for (count, weight) in by_operator.iter_mut().zip(weights) {
            let share = (weight / total * (population - 2) as f64).round();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let share = share as usize;
            *count = share;
        }
        for operator in [SIMPLE_CROSSOVER, HEURISTIC_CROSSOVER] {
            by_operator[operator] += by_operator[operator] % 2;
        }
        let children: usize = by_operator[1..].iter().sum();
        let mut population = population.max(children + 1);
        population += population % 2;
        by_operator[0] = population - children - 1;
        Some(Self {
            by_operator,
            population,
        })
    }

    /// Returns the number of children of the operators 2 to 9.
    #[must_use]
    pub fn children(&self) -> usize {
        self.by_operator[1..].iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: [f64; 9] = [50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 0.0];

    #[test]
    fn counts_are_those_of_the_published_examples() {
        let each = |population| {
            OperatorCounts::new(&DEFAULT, population)
                .unwrap()
                .by_operator
        };
        assert_eq!(each(1000), [122, 125, 125, 125, 125, 126, 125, 126, 0]);
        assert_eq!(each(16), [1, 2, 2, 2, 2, 2, 2, 2, 0]);
        assert_eq!(each(100), [15, 12, 12, 12, 12, 12, 12, 12, 0]);
    }

    #[test]
    fn the_population_grows_if_the_operators_need_it() {
        let weights = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0];
        let counts = OperatorCounts::new(&weights, 8).unwrap();
        assert_eq!(counts.children(), 8);
        assert_eq!(counts.population, 10);
        assert_eq!(counts.by_operator[0], 1);
    }

    #[test]
    fn zero_nan_and_negative_weights_are_refused() {
        assert!(OperatorCounts::new(&[0.0; 9], 100).is_none());
        assert!(OperatorCounts::new(&[f64::NAN; 9], 100).is_none());
        let mut negative = DEFAULT;
        negative[3] = -1.0;
        assert!(OperatorCounts::new(&negative, 100).is_none());
    }
}
