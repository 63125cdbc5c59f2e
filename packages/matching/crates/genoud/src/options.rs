//! The options of a search, and how many individuals each operator makes by them.

use std::fmt;

use crate::domain::{Boundary, Domain};
use crate::random::Generator;

/// Which way is better.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// Less is better.
    Minimize,
    /// More is better.
    Maximize,
}

/// The settings of a search; the names are those of Mebane & Sekhon (2011), section 3.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings, each a truth in the paper's interface too"
)]
pub struct Options {
    /// The box, real or whole numbers.
    pub domain: Domain,
    /// How strictly its bounds bind.
    pub boundary: Boundary,
    /// Which way is better.
    pub direction: Direction,
    /// Smallest number of individuals in a generation; it may grow ([`OperatorCounts`]).
    pub population: usize,
    /// Number of generations, counted from the first that was bred.
    pub generations: usize,
    /// Whether `generations` binds even if the search still improves.
    pub hard_generation_limit: bool,
    /// After more generations than this without improvement the search ends.
    pub wait_generations: usize,
    /// Smallest improvement of a criterion that counts.
    pub solution_tolerance: f64,
    /// Points that the first generation has, inside the box.
    pub starting_values: Vec<Vec<f64>>,
    /// Weights of the operators 1 to 9.
    pub operators: [f64; 9],
    /// The share of the polished point in a local-minimum crossover; drawn if None.
    pub mix: Option<f64>,
    /// Whether the best is polished each generation.
    pub polish: bool,
    /// Number of generations that are bred before the first polish.
    pub burn_in: usize,
    /// Whether waiting counts only where the gradient is small.
    pub gradient_check: bool,
    /// Whether no point is evaluated twice.
    pub memory: bool,
    /// The random source.
    pub generator: Generator,
    /// Its seed.
    pub seed: u64,
}

/// Options or answers that cannot be used, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unusable(pub String);

impl fmt::Display for Unusable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

const LOCAL_MINIMUM: usize = 8;

impl Options {
    /// The operators' counts, if everything fits together.
    pub(crate) fn counts(&self) -> Result<OperatorCounts, Unusable> {
        let Some(counts) = OperatorCounts::new(&self.operators, self.population) else {
            return Err(Unusable(format!(
                "a population of {} and operators {:?}: at least two individuals and weights \
                 of 0 or more, not all 0, are needed",
                self.population, self.operators
            )));
        };
        if self.generations == 0 {
            return Err(Unusable("0 generations: at least one is needed".into()));
        }
        if self.solution_tolerance.is_nan() || self.solution_tolerance < 0.0 {
            return Err(Unusable(format!(
                "a solution tolerance of {}: 0 or more is needed",
                self.solution_tolerance
            )));
        }
        if self.mix.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            let message = "the mix of operator 9 is a share between 0 and 1";
            return Err(Unusable(message.into()));
        }
        if self.domain.integer() && counts.each[LOCAL_MINIMUM] > 0 {
            let message = "operator 9 needs derivatives, and whole numbers have none";
            return Err(Unusable(message.into()));
        }
        if self.starting_values.len() > counts.population {
            return Err(Unusable(format!(
                "{} starting values for a population of {}",
                self.starting_values.len(),
                counts.population
            )));
        }
        for (row, point) in self.starting_values.iter().enumerate() {
            if point.len() != self.domain.parameters() {
                return Err(Unusable(format!(
                    "starting value {row} has {} parameters, not {}",
                    point.len(),
                    self.domain.parameters()
                )));
            }
            if !self.domain.contains(point) {
                return Err(Unusable(format!(
                    "starting value {row}, {point:?}, lies outside the bounds"
                )));
            }
        }
        Ok(counts)
    }
}

/// Number of individuals of the next generation from each operator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OperatorCounts {
    /// Operators 1 to 9; the first, cloning, fills the rest of the generation besides the best.
    pub each: [usize; 9],
    /// The population, grown where the operators need it.
    pub population: usize,
}

const SIMPLE_CROSSOVER: usize = 5;
const HEURISTIC_CROSSOVER: usize = 7;

impl OperatorCounts {
    /// Number of individuals for each weight, from the population minus two; crossovers that make
    /// two children at once get an even number. `None` if the weights are unusable.
    #[must_use]
    pub fn new(weights: &[f64; 9], population: usize) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let is_usable = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if !weights.iter().all(is_usable) || total <= 0.0 || !total.is_finite() || population < 2 {
            return None;
        }
        let mut each = [0; 9];
        for (count, weight) in each.iter_mut().zip(weights) {
            let share = (weight / total * (population - 2) as f64).round();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let share = share as usize;
            *count = share;
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

    /// Returns the number of children of the operators 2 to 9.
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
