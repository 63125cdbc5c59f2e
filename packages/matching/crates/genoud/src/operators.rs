//! The operators 2 to 8 of Mebane & Sekhon (2011), table 1: parents in, children out.
//!
//! If the table and R's package differ, the table decides; docs/evidence/r-packages.md lists the
//! differences.

use crate::domain::{Boundary, Domain};
use crate::individual::Individual;
use crate::options::OperatorCounts;
use crate::random::Source;

/// Number of attempts to make a child that differs from its parents.
const TRIES: usize = 1000;
/// Weight of a parent's own values after the cut of a simple crossover.
const OWN_WEIGHT: f64 = 0.1;

/// The parents of a generation and its data for the operators.
pub struct Parents<'a> {
    /// The best first.
    pub population: &'a [Individual],
    pub domain: &'a Domain,
    pub boundary: Boundary,
    /// Reach of non-uniform mutation: (1 - t / T)^6, at least 1e-5.
    pub reach: f64,
    pub source: &'a mut Source,
}

impl Parents<'_> {
    /// A parent's rank: the r-th best with probability 2^-r.
    pub fn select(&mut self) -> usize {
        self.source.geometric(self.population.len())
    }

    fn point(&self, rank: usize) -> &[f64] {
        &self.population[rank].point
    }

    /// Two ranks, the better first, whose points differ if that can be had.
    fn pair(&mut self) -> (usize, usize) {
        let first = self.select();
        let mut second = first;
        for _ in 0..TRIES {
            second = self.select();
            if self.point(first) != self.point(second) {
                break;
            }
        }
        (first.min(second), first.max(second))
    }

    /// The child of one parent, made again as long as it equals the parent.
    fn mutant(&mut self, mutate: impl Fn(&mut Self, &mut [f64])) -> Vec<f64> {
        let parent = self.select();
        let mut child = self.point(parent).to_vec();
        for _ in 0..TRIES {
            mutate(self, &mut child);
            if child != self.point(parent) {
                break;
            }
        }
        child
    }

    /// Operator 2: one parameter becomes uniform between its bounds.
    pub fn uniform_mutation(&mut self) -> Vec<f64> {
        self.mutant(|parents, child| {
            let place = parents.source.place(child.len());
            child[place] = parents.domain.draw(place, parents.source);
        })
    }

    /// Operator 3: one parameter becomes one of its bounds.
    pub fn boundary_mutation(&mut self) -> Vec<f64> {
        self.mutant(|parents, child| {
            let place = parents.source.place(child.len());
            child[place] = parents.either_bound(place);
        })
    }

    /// Operator 4: one parameter moves towards one of its bounds, less far in later generations.
    pub fn non_uniform_mutation(&mut self) -> Vec<f64> {
        self.mutant(|parents, child| {
            let place = parents.source.place(child.len());
            child[place] = parents.moved(child[place], place);
        })
    }

    /// Operator 7: every parameter moves as in operator 4.
    pub fn whole_non_uniform_mutation(&mut self) -> Vec<f64> {
        self.mutant(|parents, child| {
            for (place, value) in child.iter_mut().enumerate() {
                *value = parents.moved(*value, place);
            }
        })
    }

    /// Operator 5: a convex combination of parents, one for each parameter but at least two.
    pub fn polytope_crossover(&mut self) -> Vec<f64> {
        let parents = self.domain.parameters().max(2);
        let (first, second) = self.pair();
        let mut ranks = vec![first, second];
        while ranks.len() < parents {
            ranks.push(self.select());
        }
        let shares: Vec<f64> = ranks.iter().map(|_| self.source.uniform()).collect();
        let total: f64 = shares.iter().sum();
        let mut child = vec![0.0; self.domain.parameters()];
        for (rank, share) in ranks.into_iter().zip(shares) {
            for (value, &parent) in child.iter_mut().zip(self.point(rank)) {
                *value += share / total * parent;
            }
        }
        self.admitted(child, first)
    }

    /// Operator 6: two parents swap the values after a cut, except for a tenth of each.
    pub fn simple_crossover(&mut self) -> [Vec<f64>; 2] {
        let (first, second) = self.pair();
        let parameters = self.domain.parameters();
        // A cut before the first parameter would only exchange the parents.
        let cut = match parameters {
            1 => 0,
            _ => 1 + self.source.place(parameters - 1),
        };
        let child = |parent: usize, partner: usize| {
            let mut child = self.point(parent).to_vec();
            for (value, other) in child.iter_mut().zip(self.point(partner)).skip(cut) {
                *value = OWN_WEIGHT * *value + (1.0 - OWN_WEIGHT) * other;
            }
            self.admitted(child, parent)
        };
        [child(first, second), child(second, first)]
    }

    /// Operator 8: beyond the better of two parents, on the line from the worse; if nothing
    /// admissible is found, the better one.
    pub fn heuristic_crossover(&mut self) -> Vec<f64> {
        let (better, worse) = self.pair();
        for _ in 0..TRIES {
            let share = self.source.uniform();
            let parameters = self.point(better).iter().zip(self.point(worse));
            let child: Vec<f64> = parameters
                .map(|(&good, &bad)| self.domain.whole(share * (good - bad) + good))
                .collect();
            if self.admits(&child) {
                return child;
            }
        }
        self.point(better).to_vec()
    }

    /// Operator 9, after polishing: between the parent and its polished point.
    pub fn local_minimum_crossover(
        &mut self,
        start: &[f64],
        polished: &[f64],
        mix: Option<f64>,
    ) -> Vec<f64> {
        const HALVINGS: usize = 20;
        let mut share = mix.unwrap_or_else(|| self.source.uniform());
        for _ in 0..HALVINGS {
            let parameters = start.iter().zip(polished);
            let child: Vec<f64> = parameters
                .map(|(&from, &to)| share * to + (1.0 - share) * from)
                .collect();
            if self.admits(&child) {
                return child;
            }
            share /= 2.0;
        }
        start.to_vec()
    }

    fn either_bound(&mut self, place: usize) -> f64 {
        let (low, high) = self.domain.bounds(place);
        if self.source.coin() { low } else { high }
    }

    /// A parameter moved towards a bound; a whole number moves by at least 1.
    fn moved(&mut self, value: f64, place: usize) -> f64 {
        let share = self.reach * self.source.uniform();
        let bound = self.either_bound(place);
        let moved = self.domain.whole((1.0 - share) * value + share * bound);
        let still = self.domain.integer() && moved.to_bits() == value.to_bits();
        if still && (bound - value).abs() >= 1.0 {
            value + (bound - value).signum()
        } else {
            moved
        }
    }

    fn admits(&self, child: &[f64]) -> bool {
        child.iter().all(|value| value.is_finite())
            && (self.boundary == Boundary::Anything || self.domain.contains(child))
    }

    /// The child in the domain's numbers; the parent instead, if rounding has left the bounds.
    fn admitted(&self, mut child: Vec<f64>, parent: usize) -> Vec<f64> {
        for value in &mut child {
            *value = self.domain.whole(*value);
        }
        if self.admits(&child) {
            child
        } else {
            self.point(parent).to_vec()
        }
    }
}

/// The exponent B of non-uniform mutation.
const SHRINKING: i32 = 6;
/// With a reach of 0 the last generation would copy its parents.
const MIN_REACH: f64 = 1e-5;

/// Returns the reach of non-uniform mutation in a generation; `generations` is their limit.
pub fn mutation_reach(generation: usize, generations: usize) -> f64 {
    let left = 1.0 - generation as f64 / generations as f64;
    // Multiplied out: powi may round differently on other architectures.
    let mut power = 1.0;
    for _ in 0..SHRINKING {
        power *= left;
    }
    power.max(MIN_REACH)
}

/// The children of the operators 2 to 8, in this order.
pub fn children(parents: &mut Parents<'_>, counts: &OperatorCounts) -> Vec<Vec<f64>> {
    let mut brood = Vec::with_capacity(counts.children());
    let each = counts.each;
    brood.extend((0..each[1]).map(|_| parents.uniform_mutation()));
    brood.extend((0..each[2]).map(|_| parents.boundary_mutation()));
    brood.extend((0..each[3]).map(|_| parents.non_uniform_mutation()));
    brood.extend((0..each[4]).map(|_| parents.polytope_crossover()));
    brood.extend((0..each[5] / 2).flat_map(|_| parents.simple_crossover()));
    brood.extend((0..each[6]).map(|_| parents.whole_non_uniform_mutation()));
    brood.extend((0..each[7]).map(|_| parents.heuristic_crossover()));
    brood
}

#[cfg(test)]
#[path = "operators_tests.rs"]
mod tests;
