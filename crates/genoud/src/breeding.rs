//! From the parents of one generation to the children of the next.

use crate::counts::OperatorCounts;
use crate::operators::Parents;

/// The exponent B of non-uniform mutation.
const SHRINKING: i32 = 6;
/// Without a least reach the last generation would copy its parents.
const LEAST_REACH: f64 = 1e-5;

/// How far non-uniform mutation reaches in a generation, of so many at most.
pub fn reach(generation: usize, generations: usize) -> f64 {
    let left = 1.0 - generation as f64 / generations as f64;
    // Multiplied out: powi may round differently on other architectures.
    let mut power = 1.0;
    for _ in 0..SHRINKING {
        power *= left;
    }
    power.max(LEAST_REACH)
}

/// The children of the operators 2 to 8, in this order.
pub fn children(parents: &mut Parents<'_>, counts: &OperatorCounts) -> Vec<Vec<f64>> {
    let mut brood = Vec::with_capacity(counts.children());
    let [
        _,
        uniform,
        boundary,
        non_uniform,
        polytope,
        simple,
        whole,
        heuristic,
        _,
    ] = counts.each;
    brood.extend((0..uniform).map(|_| parents.uniform_mutation()));
    brood.extend((0..boundary).map(|_| parents.boundary_mutation()));
    brood.extend((0..non_uniform).map(|_| parents.non_uniform_mutation()));
    brood.extend((0..polytope).map(|_| parents.polytope_crossover()));
    for _ in 0..simple / 2 {
        brood.extend(parents.simple_crossover());
    }
    brood.extend((0..whole).map(|_| parents.whole_non_uniform_mutation()));
    brood.extend((0..heuristic).map(|_| parents.heuristic_crossover()));
    brood
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reach_shrinks_from_all_to_almost_nothing() {
        assert!((reach(0, 10) - 1.0).abs() < 1e-15);
        assert!((reach(5, 10) - 1.0 / 64.0).abs() < 1e-15);
        assert!((reach(10, 10) - LEAST_REACH).abs() < 1e-15);
    }
}
