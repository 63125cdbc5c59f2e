//! The three algorithms compared with each other.

use equipoise_matching::Pairs;

use super::data::{COVARIATES, Data};
use super::fitness::Balance;
use super::{Algorithm, candidates, is_better, prepared};
use crate::blas::tests::plain;
use crate::counting::allocations_of;

fn matched(algorithm: Algorithm, data: &Data, weights: &[f64]) -> Pairs {
    let blas = (algorithm == Algorithm::Blas).then(plain);
    prepared(algorithm, data, blas.as_ref()).matches(weights)
}

/// Every fifth row: both arms, and quick in a program that is not optimised.
fn fifth_of_rows() -> Data {
    let all = Data::made_up();
    all.of_rows((0..all.rows()).step_by(5))
}

/// Every pair that should be found, straight from the definition.
fn expected(data: &Data, weights: &[f64]) -> Vec<(usize, usize)> {
    let standardised = super::matching::standardised(data);
    let squared = |unit: usize, other: usize| -> f64 {
        (0..COVARIATES.len())
            .map(|column| {
                let apart = standardised.at(unit, column) - standardised.at(other, column);
                weights[column] * apart * apart
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
        let data = fifth_of_rows().stacked(rows).unwrap();
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
    let data = Data::made_up();
    let weights = [1.0; COVARIATES.len()];
    let blas = plain();
    let mut matching = prepared(Algorithm::Blas, &data, Some(&blas));
    let bytes = data.rows() * COVARIATES.len() * size_of::<f64>();
    let (counted, pairs) = allocations_of(bytes..=bytes, || matching.matches(&weights));
    assert_eq!(counted, 0);
    assert!(!pairs.query.is_empty());
}

#[test]
fn pairs_grow_with_the_square_of_the_copies() {
    let weights = [1.0; COVARIATES.len()];
    let once = matched(Algorithm::Fast, &fifth_of_rows(), &weights);
    let thrice = fifth_of_rows().stacked(3 * 89).unwrap();
    let pairs = matched(Algorithm::Fast, &thrice, &weights);
    assert_eq!(pairs.query.len(), 9 * once.query.len());
}

#[test]
fn results_grow_by_copying_all_that_is_there() {
    let data = fifth_of_rows().stacked(5 * 89).unwrap();
    let weights = [1.0; COVARIATES.len()];
    // Beyond the temporaries of the distances there are only the results.
    let temporary = data.rows() * COVARIATES.len() * size_of::<f64>();
    let mut matching = prepared(Algorithm::Scythe, &data, None);
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
fn better_balance_is_a_larger_smallest_p_value_then_the_next() {
    assert!(is_better(&[0.2, 0.3], &[0.1, 0.9]));
    assert!(is_better(&[0.2, 0.4], &[0.2, 0.3]));
    assert!(!is_better(&[0.2, 0.3], &[0.2, 0.3]));
    assert!(!is_better(&[0.1, 0.9], &[0.2, 0.3]));
}

#[test]
fn every_column_has_two_p_values_in_order() {
    let data = Data::made_up();
    let pairs = matched(Algorithm::Fast, &data, &[1.0; COVARIATES.len()]);
    let p_values = Balance::new(&data).p_values(&pairs);
    assert_eq!(p_values.len(), 2 * (COVARIATES.len() + 1));
    assert!(p_values.is_sorted());
    assert!(p_values.iter().all(|p| (0.0..=1.0).contains(p)));
}
