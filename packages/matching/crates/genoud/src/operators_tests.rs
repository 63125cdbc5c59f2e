//! Each operator changes its parents only as the paper allows.

#![allow(clippy::float_cmp)] // These values are exact.
#![allow(clippy::redundant_closure_for_method_calls)] // The methods have too narrow a lifetime.

use super::*;
use crate::random::Generator;

const DRAWS: usize = 2000;

fn candidates(points: &[&[f64]]) -> Vec<Candidate> {
    let candidate = |point: &&[f64]| Candidate {
        point: point.to_vec(),
        values: vec![0.0],
    };
    points.iter().map(candidate).collect()
}

/// Runs an operator on the same parents many times, inside the unit box.
fn children_in_box(
    population: &[Candidate],
    operator: impl FnMut(&mut Breeder<'_>) -> Vec<f64>,
) -> Vec<Vec<f64>> {
    let domain = cube(population[0].point.len());
    children(population, &domain, Boundary::Candidates, operator)
}

/// Runs an operator on the same parents many times, with a reach of 0.1.
fn children(
    population: &[Candidate],
    domain: &Domain,
    boundary: Boundary,
    mut operator: impl FnMut(&mut Breeder<'_>) -> Vec<f64>,
) -> Vec<Vec<f64>> {
    let mut source = Source::new(Generator::Philox, 11);
    let mut breeder = Breeder {
        population,
        domain,
        boundary,
        reach: 0.1,
        source: &mut source,
    };
    (0..DRAWS).map(|_| operator(&mut breeder)).collect()
}

/// Makes the domain from 0 to 1 in each parameter.
fn cube(parameters: usize) -> Domain {
    Domain::new(vec![0.0; parameters], vec![1.0; parameters], false).unwrap()
}

fn changed_parameters(child: &[f64], parent: &[f64]) -> Vec<usize> {
    (0..child.len())
        .filter(|&parameter| child[parameter].to_bits() != parent[parameter].to_bits())
        .collect()
}

const MIDDLE: [f64; 3] = [0.5, 0.25, 0.75];

#[test]
fn boundary_mutation_keeps_all_parameters_but_one() {
    let population = candidates(&[&MIDDLE]);
    let all = children_in_box(&population, |breeder| breeder.boundary_mutation());
    let mut counts = [0; 3];
    for child in &all {
        let parameters = changed_parameters(child, &MIDDLE);
        assert_eq!(parameters.len(), 1);
        counts[parameters[0]] += 1;
    }
    assert!(counts.iter().all(|&count| count > DRAWS / 4));
}

#[test]
fn uniform_mutations_change_one_parameter_or_several() {
    let population = candidates(&[&MIDDLE]);
    let operators: [fn(&mut Breeder<'_>) -> Vec<f64>; 2] = [
        |breeder| breeder.uniform_mutation(),
        |breeder| breeder.non_uniform_mutation(),
    ];
    for operator in operators {
        let mut counts = [0; 4];
        for child in &children_in_box(&population, operator) {
            counts[changed_parameters(child, &MIDDLE).len()] += 1;
        }
        // With 1, 2 or 3 draws among 3 parameters: 1 in 14/27 of the children, 3 in 2/27.
        assert_eq!(counts[0], 0);
        assert!(counts[1] > DRAWS * 12 / 27 && counts[1] < DRAWS * 16 / 27);
        assert!(counts[3] > DRAWS / 27 && counts[3] < DRAWS * 3 / 27);
    }
}

#[test]
fn uniform_mutation_reaches_every_part_of_the_domain() {
    let population = candidates(&[&[0.5]]);
    let all = children_in_box(&population, |breeder| breeder.uniform_mutation());
    let mut quarters = [0; 4];
    for child in &all {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let quarter = (child[0] * 4.0) as usize;
        quarters[quarter] += 1;
    }
    assert!(quarters.iter().all(|&count| count > DRAWS / 5));
}

#[test]
fn boundary_mutation_moves_to_both_bounds() {
    let population = candidates(&[&[0.5]]);
    let all = children_in_box(&population, |breeder| breeder.boundary_mutation());
    let low = all.iter().filter(|child| child[0] == 0.0).count();
    let high = all.iter().filter(|child| child[0] == 1.0).count();
    assert_eq!(low + high, DRAWS);
    assert!(low > DRAWS / 3 && high > DRAWS / 3);
}

#[test]
fn non_uniform_mutation_goes_no_further_than_its_reach() {
    let population = candidates(&[&MIDDLE]);
    let all = children_in_box(&population, |breeder| breeder.whole_non_uniform_mutation());
    for child in &all {
        assert_eq!(changed_parameters(child, &MIDDLE).len(), 3);
        for (value, from) in child.iter().zip(MIDDLE) {
            assert!(*value >= from - 0.1 * from);
            assert!(*value <= from + 0.1 * (1.0 - from));
        }
    }
}

#[test]
fn polytope_crossover_stays_in_the_hull_of_its_parents() {
    let corners: [&[f64]; 3] = [&[0.0, 0.0], &[1.0, 0.0], &[0.0, 1.0]];
    let population = candidates(&corners);
    let all = children_in_box(&population, |breeder| breeder.polytope_crossover());
    for child in &all {
        assert!(child[0] >= 0.0 && child[1] >= 0.0);
        assert!(child[0] + child[1] <= 1.0 + 1e-12);
    }
}

#[test]
fn simple_crossover_swaps_nine_tenths_after_one_cut() {
    let population = candidates(&[&[0.0; 4], &[1.0; 4]]);
    let mut pairs = Vec::new();
    children_in_box(&population, |breeder| {
        pairs.push(breeder.simple_crossover());
        Vec::new()
    });
    let mut cuts = [0; 4];
    for [first, second] in &pairs {
        let cut = first.iter().filter(|&&value| value == 0.0).count();
        cuts[cut] += 1;
        assert!(first[cut..].iter().all(|&value| value == 0.9));
        assert!(second[..cut].iter().all(|&value| value == 1.0));
        assert!(second[cut..].iter().all(|&value| value == 0.1));
    }
    assert_eq!(cuts[0], 0);
    assert!(cuts[1..].iter().all(|&count| count > DRAWS / 5));
}

#[test]
fn heuristic_crossover_lies_beyond_the_better_parent() {
    let population = candidates(&[&[0.5], &[0.4]]);
    let all = children_in_box(&population, |breeder| breeder.heuristic_crossover());
    assert!(all.iter().all(|child| child[0] > 0.5 && child[0] < 0.6));
}

#[test]
fn heuristic_crossover_returns_the_better_parent_if_no_child_is_inside() {
    let population = candidates(&[&[1.0], &[0.4]]);
    let all = children_in_box(&population, |breeder| breeder.heuristic_crossover());
    assert!(all.iter().all(|child| child[0] == 1.0));
    let anywhere = children(&population, &cube(1), Boundary::RandomPoints, |breeder| {
        breeder.heuristic_crossover()
    });
    assert!(anywhere.iter().all(|child| child[0] > 1.0));
}

#[test]
fn local_minimum_crossover_halves_its_step_until_it_is_inside() {
    let population = candidates(&[&[0.5]]);
    let all = children_in_box(&population, |breeder| {
        breeder.local_minimum_crossover(&[0.5], &[2.5], Some(1.0))
    });
    assert!(all.iter().all(|child| child[0] == 1.0));
    let mixed = children_in_box(&population, |breeder| {
        breeder.local_minimum_crossover(&[0.5], &[0.7], None)
    });
    assert!(mixed.iter().all(|child| child[0] > 0.5 && child[0] < 0.7));
}

#[test]
fn whole_numbers_move_by_at_least_one_and_stay_whole() {
    let domain = Domain::new(vec![0.0, 0.0], vec![5.0, 5.0], true).unwrap();
    let population = candidates(&[&[2.0, 3.0], &[1.0, 0.0], &[5.0, 5.0]]);
    let operators: [fn(&mut Breeder<'_>) -> Vec<f64>; 6] = [
        |breeder| breeder.uniform_mutation(),
        |breeder| breeder.boundary_mutation(),
        |breeder| breeder.non_uniform_mutation(),
        |breeder| breeder.whole_non_uniform_mutation(),
        |breeder| breeder.polytope_crossover(),
        |breeder| breeder.heuristic_crossover(),
    ];
    for operator in operators {
        for child in children(&population, &domain, Boundary::Candidates, operator) {
            assert!(domain.contains(&child));
            assert!(child.iter().all(|value| value.fract() == 0.0));
        }
    }
    let single = candidates(&[&[2.0, 3.0]]);
    let moved = children(&single, &domain, Boundary::Candidates, |breeder| {
        breeder.non_uniform_mutation()
    });
    assert!(moved.iter().all(|child| child != &single[0].point));
}

#[test]
fn operators_end_in_a_domain_of_one_point() {
    let domain = Domain::new(vec![1.0], vec![1.0], false).unwrap();
    let population = candidates(&[&[1.0], &[1.0]]);
    let mut source = Source::new(Generator::Philox, 1);
    let mut breeder = Breeder {
        population: &population,
        domain: &domain,
        boundary: Boundary::Candidates,
        reach: 0.1,
        source: &mut source,
    };
    assert_eq!(breeder.uniform_mutation(), [1.0]);
    assert_eq!(breeder.heuristic_crossover(), [1.0]);
    assert_eq!(breeder.simple_crossover(), [[1.0], [1.0]]);
}

#[test]
fn the_mutation_reach_shrinks_from_1_to_its_minimum() {
    assert!((mutation_reach(0, 10) - 1.0).abs() < 1e-15);
    assert!((mutation_reach(5, 10) - 1.0 / 64.0).abs() < 1e-15);
    assert!((mutation_reach(10, 10) - MIN_REACH).abs() < 1e-15);
}
