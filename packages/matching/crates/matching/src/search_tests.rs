//! The search finds the same neighbours with every instruction set, by tree and without it.

use super::{Filter, Instructions, Pool, Query, Search};
use crate::embed::{Points, embed};
use crate::instructions::LANES;
use crate::problem::{Estimand, Method, Metric, Problem, Rules};
use crate::random::Draws;

const COLUMNS: usize = 5;

fn problem(rows: usize) -> Problem {
    let mut draws = Draws::new(7, rows);
    let value = |_| draws.below(1000) as f64 / 100.0;
    Problem {
        x: (0..rows * COLUMNS).map(value).collect(),
        columns: COLUMNS,
        treated: (0..rows).map(|row| row % 3 == 0).collect(),
        weights: None,
        estimand: Estimand::Treated,
        matches: 2,
        metric: Metric::InverseVariance,
        caliper: None,
        restrictions: Vec::new(),
        replace: true,
        ties: true,
        tolerance: 1e-5,
        rules: Rules::Correct,
        threads: 1,
        seed: 0,
        method: Method::Tree,
    }
}

fn query(points: &Points, row: usize, needed_weight: f64) -> Query<'_> {
    Query {
        point: row,
        coordinates: points.row(row),
        calipers: Vec::new(),
        needed_weight,
        tolerance: 0.0,
        fixed_distances: Vec::new(),
        forbidden: Vec::new(),
    }
}

/// Returns the two rows with the smallest distances, found by sorting.
fn two_nearest(rows: &[u32], distance: impl Fn(usize) -> f64) -> Vec<u32> {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|&left, &right| distance(left as usize).total_cmp(&distance(right as usize)));
    sorted.truncate(2);
    sorted.sort_unstable();
    sorted
}

#[test]
fn every_instruction_set_finds_the_nearest_points() {
    for rows in [10, LANES * 3, 2000] {
        let problem = problem(rows);
        let points = embed(&problem);
        let pool_rows: Vec<u32> = (0..).take(rows).filter(|row| row % 3 > 0).collect();
        let pool = Pool::new(&problem, &points, &pool_rows, false);
        let query_rows: Vec<usize> = (0..rows).step_by(3).take(29).collect();
        let queries = query_rows.iter().map(|&row| query(&points, row, 2.0));
        let queries: Vec<Query<'_>> = queries.collect();
        let sets = Instructions::ALL
            .into_iter()
            .filter(|set| set.is_available());
        for (instructions, uses_tree) in sets.flat_map(|set| [(set, false), (set, true)]) {
            let search = Search {
                pool: &pool,
                weight_of: &|_, _| Some(1.0),
                uses_tree,
                filter: None,
                in_packets: false,
                instructions,
            };
            let results = search.run(&queries);
            for (&row, result) in query_rows.iter().zip(&results) {
                let expected = two_nearest(&pool_rows, |other| {
                    let pairs = points.row(row).iter().zip(points.row(other));
                    pairs.map(|(left, right)| (left - right).powi(2)).sum()
                });
                let neighbours = result.neighbours.iter();
                let mut members: Vec<u32> = neighbours
                    .map(|&(_, point)| pool.members(point as usize)[0])
                    .collect();
                members.sort_unstable();
                assert_eq!(members, expected, "{instructions:?}, tree: {uses_tree}");
            }
        }
    }
}

#[test]
fn a_filter_changes_no_neighbour() {
    for (rows, outlier) in [(40, 1.0), (700, 1e6), (5000, 1.0)] {
        let mut problem = problem(rows);
        problem.x[0] *= outlier;
        let points = embed(&problem);
        let pool_rows: Vec<u32> = (0..).take(rows).filter(|row| row % 3 > 0).collect();
        let pool = Pool::new(&problem, &points, &pool_rows, false);
        let filter = Filter::new(&pool, &pool);
        let point = |point: usize| Query {
            point,
            tolerance: 1e-5,
            ..query(&points, pool.members(point)[0] as usize, 2.0)
        };
        let queries: Vec<Query<'_>> = (0..pool.point_count).step_by(2).map(point).collect();
        let is_other = |point: usize, other: usize| (point != other).then_some(1.0);
        let search = |instructions, filter, uses_tree, in_packets| Search {
            pool: &pool,
            weight_of: &is_other,
            uses_tree,
            filter,
            in_packets,
            instructions,
        };
        let sets = Instructions::ALL.into_iter();
        for set in sets.filter(|set| set.is_available()) {
            let expected = search(set, None, true, false).run(&queries);
            for (uses_tree, in_packets) in [(false, false), (true, false), (true, true)] {
                let results = search(set, Some(&filter), uses_tree, in_packets).run(&queries);
                for (result, expected) in results.iter().zip(&expected) {
                    let found = (&result.neighbours, result.last_distance);
                    let expected = (&expected.neighbours, expected.last_distance);
                    assert!(found == expected, "{set:?} {uses_tree} {in_packets}");
                }
            }
        }
    }
}

#[test]
fn a_removed_point_is_not_found_again() {
    let problem = problem(400);
    let points = embed(&problem);
    let pool_rows: Vec<u32> = (0..400).filter(|row| row % 3 > 0).collect();
    let mut pool = Pool::new(&problem, &points, &pool_rows, false);
    for remaining in (0..pool.point_count).rev() {
        let search = Search {
            pool: &pool,
            weight_of: &|_, _| Some(1.0),
            uses_tree: true,
            filter: None,
            in_packets: false,
            instructions: Instructions::best(),
        };
        let result = &search.run(&[query(&points, 0, 1.0)])[0];
        let (squared, point) = result.neighbours[0];
        let is_near = squared <= result.last_distance;
        assert!(is_near && result.has_enough, "{remaining} are left");
        pool.remove(point as usize);
    }
    assert!((0..pool.block_count()).all(|block| pool.block(block)[0].is_infinite()));
}
