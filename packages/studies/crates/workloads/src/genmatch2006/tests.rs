//! Tests the matches of the three algorithms and their allocations.

use equipoise_matching::Pairs;

use super::data::{COVARIATES, Data};
use super::fitness::Balance;
use super::{Algorithm, candidates, is_better, prepare};
use crate::blas::tests::test_blas;
use crate::counting_allocator::allocations_of;

fn matched(algorithm: Algorithm, data: &Data, weights: &[f64]) -> Pairs {
    let blas = (algorithm == Algorithm::Blas).then(test_blas);
    prepare(algorithm, data, blas.as_ref()).matches(weights)
}

/// Returns every fifth row of the data. Few rows are enough, because tests are not optimised.
fn fifth_of_rows() -> Data {
    let all = Data::generate();
    all.select_rows((0..all.rows()).step_by(5))
}

/// Returns the pairs that an algorithm must find, by the definition of a match.
fn expected(data: &Data, weights: &[f64]) -> Vec<(usize, usize)> {
    let standardised = super::matching::standardised(data);
    let squared = |unit: usize, other: usize| -> f64 {
        (0..COVARIATES.len())
            .map(|column| {
                let difference = standardised.at(unit, column) - standardised.at(other, column);
                weights[column] * difference * difference
            })
            .sum()
    };
    let mut pairs = Vec::new();
    for unit in 0..data.rows() {
        let others = || (0..data.rows()).filter(|&other| data.treated[other] != data.treated[unit]);
        let nearest = others()
            .map(|other| squared(unit, other))
            .fold(f64::INFINITY, f64::min);
        pairs.extend(
            others()
                .filter(|&other| squared(unit, other) <= nearest + super::matching::TOLERANCE)
                .map(|other| (unit, other)),
        );
    }
    pairs
}

fn as_list(pairs: &Pairs) -> Vec<(usize, usize)> {
    let units = pairs.iter();
    units.map(|(query, matched, _)| (query, matched)).collect()
}

#[test]
fn all_three_find_the_pairs_of_the_definition_with_the_same_weights() {
    for rows in [150, 267] {
        let data = fifth_of_rows().repeated(rows).unwrap();
        for weights in candidates::weights(2, COVARIATES.len()) {
            let by_definition = expected(&data, &weights);
            assert!(by_definition.len() > rows, "there are ties");
            let scythe = matched(Algorithm::Scythe, &data, &weights);
            assert_eq!(as_list(&scythe), by_definition);
            let total: f64 = scythe.weight.iter().sum();
            assert!((total - rows as f64).abs() < 1e-9);
            for other in [Algorithm::Blas, Algorithm::Fast] {
                assert_eq!(matched(other, &data, &weights), scythe, "{other:?}");
            }
        }
    }
}

#[test]
fn the_work_space_of_the_blas_algorithm_is_allocated_once() {
    let data = Data::generate();
    let weights = [1.0; COVARIATES.len()];
    let blas = test_blas();
    let mut matching = prepare(Algorithm::Blas, &data, Some(&blas));
    let bytes = data.rows() * COVARIATES.len() * size_of::<f64>();
    let (counted, pairs) = allocations_of(bytes..=bytes, || matching.matches(&weights));
    assert_eq!(counted, 0);
    assert!(!pairs.query.is_empty());
}

#[test]
fn three_copies_of_the_rows_have_nine_times_the_pairs() {
    let weights = [1.0; COVARIATES.len()];
    let once = matched(Algorithm::Fast, &fifth_of_rows(), &weights);
    let thrice = fifth_of_rows().repeated(3 * 89).unwrap();
    let pairs = matched(Algorithm::Fast, &thrice, &weights);
    assert_eq!(pairs.query.len(), 9 * once.query.len());
}

#[test]
fn the_results_are_copied_for_each_unit() {
    let data = fifth_of_rows().repeated(5 * 89).unwrap();
    let weights = [1.0; COVARIATES.len()];
    // Of all other allocations, only the results are larger than these temporary matrices.
    let temporary = data.rows() * COVARIATES.len() * size_of::<f64>();
    let mut matching = prepare(Algorithm::Scythe, &data, None);
    let (counted, pairs) =
        allocations_of(temporary + 1..=usize::MAX, || matching.matches(&weights));
    // After each unit: the copy by value and the result, each allocated twice.
    let bytes = |pairs: usize| pairs * 3 * size_of::<f64>();
    let expected: usize = (1..data.rows())
        .map(|unit| {
            let before = pairs.query.iter().filter(|&&query| query < unit).count();
            let after = pairs.query.iter().filter(|&&query| query <= unit).count();
            2 * usize::from(bytes(before) > temporary) + 2 * usize::from(bytes(after) > temporary)
        })
        .sum();
    assert_eq!(counted, expected);
    assert!(expected > 100, "the last results are that long");
}

#[test]
fn the_better_candidate_has_the_larger_smallest_p_value_then_the_larger_next() {
    assert!(is_better(&[0.2, 0.3], &[0.1, 0.9]));
    assert!(is_better(&[0.2, 0.4], &[0.2, 0.3]));
    assert!(!is_better(&[0.2, 0.3], &[0.2, 0.3]));
    assert!(!is_better(&[0.1, 0.9], &[0.2, 0.3]));
}

#[test]
fn every_column_has_two_p_values_in_order() {
    let data = Data::generate();
    let pairs = matched(Algorithm::Fast, &data, &[1.0; COVARIATES.len()]);
    let p_values = Balance::new(&data).p_values(&pairs);
    assert_eq!(p_values.len(), 2 * (COVARIATES.len() + 1));
    assert!(p_values.is_sorted());
    assert!(p_values.iter().all(|p| (0.0..=1.0).contains(p)));
}
