//! The operators 2 to 9 of Mebane & Sekhon (2011), table 1, make new points (children) from
//! candidates (parents). A mutation changes one parent; a crossover combines several. A child is
//! admissible if it is finite and, unless only random points are bounded, inside the bounds.
//!
//! Where the table and R's package differ, this module follows the table;
//! docs/evidence/r-packages.md lists the differences.

use crate::candidate::Candidate;
use crate::domain::{Boundary, Domain};
use crate::options::OperatorCounts;
use crate::random::Source;

/// Largest number of attempts to draw different parents, a changed child or an admissible child.
const MAX_TRIES: usize = 1000;
/// Weight of the own value of a parent in its child by operator 6.
const OWN_WEIGHT: f64 = 0.1;
/// Largest number of times that operator 9 halves the share of the polished point.
const MAX_HALVINGS: usize = 20;

/// Makes children from the population by the operators.
pub struct Breeder<'a> {
    /// Possible parents, the best first.
    pub population: &'a [Candidate],
    pub domain: &'a Domain,
    pub boundary: Boundary,
    /// Largest move of operators 4 and 7, as a fraction of the way to the bound.
    pub reach: f64,
    pub source: &'a mut Source,
}

impl Breeder<'_> {
    /// Draws the rank of a parent: the best with probability 1/2, the next with 1/4, and so on.
    pub fn draw_parent(&mut self) -> usize {
        self.source.geometric_rank(self.population.len())
    }

    fn point(&self, rank: usize) -> &[f64] {
        &self.population[rank].point
    }

    /// Draws the ranks of two parents, the better first; their points differ if possible.
    fn draw_pair(&mut self) -> (usize, usize) {
        let first = self.draw_parent();
        let mut second = first;
        for _ in 0..MAX_TRIES {
            second = self.draw_parent();
            if self.point(first) != self.point(second) {
                break;
            }
        }
        (first.min(second), first.max(second))
    }

    /// Copies a parent, and mutates the copy until it differs from the parent.
    fn mutated_parent(&mut self, mutate: impl Fn(&mut Self, &mut [f64])) -> Vec<f64> {
        let parent = self.draw_parent();
        let mut child = self.point(parent).to_vec();
        for _ in 0..MAX_TRIES {
            mutate(self, &mut child);
            if child != self.point(parent) {
                break;
            }
        }
        child
    }

    /// Operator 2: some parameters become uniform draws between their bounds.
    pub fn uniform_mutation(&mut self) -> Vec<f64> {
        self.mutated_parent(|breeder, child| {
            for _ in 0..breeder.draw_changes(child.len()) {
                let parameter = breeder.source.index(child.len());
                child[parameter] = breeder.domain.draw(parameter, breeder.source);
            }
        })
    }

    /// Operator 3: one parameter becomes one of its bounds.
    pub fn boundary_mutation(&mut self) -> Vec<f64> {
        self.mutated_parent(|breeder, child| {
            let parameter = breeder.source.index(child.len());
            child[parameter] = breeder.random_bound(parameter);
        })
    }

    /// Operator 4: some parameters move towards one of their bounds, less far in later generations.
    pub fn non_uniform_mutation(&mut self) -> Vec<f64> {
        self.mutated_parent(|breeder, child| {
            for _ in 0..breeder.draw_changes(child.len()) {
                let parameter = breeder.source.index(child.len());
                child[parameter] = breeder.moved_towards_bound(child[parameter], parameter);
            }
        })
    }

    /// Operator 7: every parameter moves as in operator 4.
    pub fn whole_non_uniform_mutation(&mut self) -> Vec<f64> {
        self.mutated_parent(|breeder, child| {
            for (parameter, value) in child.iter_mut().enumerate() {
                *value = breeder.moved_towards_bound(*value, parameter);
            }
        })
    }

    /// Operator 5: a convex combination of as many parents as parameters, but at least two.
    pub fn polytope_crossover(&mut self) -> Vec<f64> {
        let parent_count = self.domain.parameter_count().max(2);
        let (first, second) = self.draw_pair();
        let mut ranks = vec![first, second];
        while ranks.len() < parent_count {
            ranks.push(self.draw_parent());
        }
        let shares: Vec<f64> = ranks.iter().map(|_| self.source.uniform()).collect();
        let total: f64 = shares.iter().sum();
        let mut child = vec![0.0; self.domain.parameter_count()];
        for (rank, share) in ranks.into_iter().zip(shares) {
            for (value, &parent) in child.iter_mut().zip(self.point(rank)) {
                *value += share / total * parent;
            }
        }
        self.admissible_or_parent(child, first)
    }

    /// Operator 6: two children average both parents with the weights 0.1 and 0.9, but only in the
    /// parameters after a random cut.
    pub fn simple_crossover(&mut self) -> [Vec<f64>; 2] {
        let (first, second) = self.draw_pair();
        let parameters = self.domain.parameter_count();
        // Without a cut, the children would nearly be the exchanged parents.
        let cut = match parameters {
            1 => 0,
            _ => 1 + self.source.index(parameters - 1),
        };
        let child = |parent: usize, partner: usize| {
            let mut child = self.point(parent).to_vec();
            for (value, other) in child.iter_mut().zip(self.point(partner)).skip(cut) {
                *value = OWN_WEIGHT * *value + (1.0 - OWN_WEIGHT) * other;
            }
            self.admissible_or_parent(child, parent)
        };
        [child(first, second), child(second, first)]
    }

    /// Operator 8: the child lies beyond the better of two parents, on the line from the worse
    /// parent. If no admissible point is found, the child is the better parent.
    pub fn heuristic_crossover(&mut self) -> Vec<f64> {
        let (better, worse) = self.draw_pair();
        for _ in 0..MAX_TRIES {
            let share = self.source.uniform();
            let parameters = self.point(better).iter().zip(self.point(worse));
            let child: Vec<f64> = parameters
                .map(|(&good, &bad)| self.domain.rounded(share * (good - bad) + good))
                .collect();
            if self.is_admissible(&child) {
                return child;
            }
        }
        self.point(better).to_vec()
    }

    /// Operator 9: the child lies between a parent (`start`) and its polished point. `mix` is the
    /// share of the polished point; `None` draws the share.
    pub fn local_minimum_crossover(
        &mut self,
        start: &[f64],
        polished: &[f64],
        mix: Option<f64>,
    ) -> Vec<f64> {
        let mut share = mix.unwrap_or_else(|| self.source.uniform());
        for _ in 0..MAX_HALVINGS {
            let parameters = start.iter().zip(polished);
            let child: Vec<f64> = parameters
                .map(|(&from, &to)| share * to + (1.0 - share) * from)
                .collect();
            if self.is_admissible(&child) {
                return child;
            }
            share /= 2.0;
        }
        start.to_vec()
    }

    /// Draws how often a mutation changes a parameter: at most once for each parameter.
    ///
    /// The paper changes a single parameter. Better points may need changes of two parameters that
    /// are worse one at a time, so a mutation may make both.
    fn draw_changes(&mut self, parameters: usize) -> usize {
        1 + self.source.index(parameters)
    }

    fn random_bound(&mut self, parameter: usize) -> f64 {
        let (low, high) = self.domain.bounds(parameter);
        if self.source.coin() { low } else { high }
    }

    /// Returns a parameter moved towards a bound; a whole number moves by at least 1.
    fn moved_towards_bound(&mut self, value: f64, parameter: usize) -> f64 {
        let share = self.reach * self.source.uniform();
        let bound = self.random_bound(parameter);
        let moved = self.domain.rounded((1.0 - share) * value + share * bound);
        let is_unmoved = self.domain.is_integer() && moved.to_bits() == value.to_bits();
        if is_unmoved && (bound - value).abs() >= 1.0 {
            value + (bound - value).signum()
        } else {
            moved
        }
    }

    /// Whether the child is admissible.
    fn is_admissible(&self, child: &[f64]) -> bool {
        child.iter().all(|value| value.is_finite())
            && (self.boundary == Boundary::RandomPoints || self.domain.contains(child))
    }

    /// Returns the rounded child if it is admissible, else the parent.
    fn admissible_or_parent(&self, mut child: Vec<f64>, parent: usize) -> Vec<f64> {
        for value in &mut child {
            *value = self.domain.rounded(*value);
        }
        if self.is_admissible(&child) {
            child
        } else {
            self.point(parent).to_vec()
        }
    }
}

/// The exponent of the reach, which the paper calls B.
const MUTATION_EXPONENT: i32 = 6;
/// Smallest reach. With a reach of 0, the last generation would copy its parents.
const MIN_REACH: f64 = 1e-5;

/// Returns the reach (1 - t / T)^6 in generation t, with the limit T of generations.
pub fn mutation_reach(generation: usize, generation_limit: usize) -> f64 {
    let remaining = 1.0 - generation as f64 / generation_limit as f64;
    // A loop multiplies, because powi may round differently on other architectures.
    let mut power = 1.0;
    for _ in 0..MUTATION_EXPONENT {
        power *= remaining;
    }
    power.max(MIN_REACH)
}

/// Makes the children of the operators 2 to 8, in this order. Operator n has the index n - 1.
pub fn children(breeder: &mut Breeder<'_>, counts: &OperatorCounts) -> Vec<Vec<f64>> {
    let mut offspring = Vec::with_capacity(counts.children());
    let by_operator = counts.by_operator;
    offspring.extend((0..by_operator[1]).map(|_| breeder.uniform_mutation()));
    offspring.extend((0..by_operator[2]).map(|_| breeder.boundary_mutation()));
    offspring.extend((0..by_operator[3]).map(|_| breeder.non_uniform_mutation()));
    offspring.extend((0..by_operator[4]).map(|_| breeder.polytope_crossover()));
    offspring.extend((0..by_operator[5] / 2).flat_map(|_| breeder.simple_crossover()));
    offspring.extend((0..by_operator[6]).map(|_| breeder.whole_non_uniform_mutation()));
    offspring.extend((0..by_operator[7]).map(|_| breeder.heuristic_crossover()));
    offspring
}

#[cfg(test)]
#[path = "operators_tests.rs"]
mod tests;
