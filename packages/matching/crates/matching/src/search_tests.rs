//! Results of the search, the same with any instructions.

use super::{Instructions, Pool, Query, Search};
use crate::embed::{Points, embed};
use crate::instructions::LANES;
use crate::problem::{Estimand, Method, Metric, Problem, Rules};
use crate::random::Draws;

const COLUMNS: usize = 5;

fn problem(rows: usize) -> Problem {
    let mut draws = Draws::of(7, rows);
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

fn query(points: &Points, row: usize, needed: f64) -> Query<'_> {
    Query {
        number: row,
        point: points.of(row),
        fence: Vec::new(),
        needed,
        slack: 0.0,
        fixed: Vec::new(),
        forbidden: Vec::new(),
    }
}

/// Rows of the two nearest, found without any of this.
fn two_nearest(rows: &[u32], distance: impl Fn(usize) -> f64) -> Vec<u32> {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|&left, &right| distance(left as usize).total_cmp(&distance(right as usize)));
    sorted.truncate(2);
    sorted.sort_unstable();
    sorted
}

#[test]
fn each_kind_of_instructions_finds_the_nearest_of_all_points() {
    for rows in [10, LANES * 3, 2000] {
        let problem = problem(rows);
        let points = embed(&problem);
        let served: Vec<u32> = (0..).take(rows).filter(|row| row % 3 > 0).collect();
        let pool = Pool::new(&problem, &points, &served, false);
        let query_rows: Vec<usize> = (0..rows).step_by(3).take(29).collect();
        let queries = query_rows.iter().map(|&row| query(&points, row, 2.0));
        let queries: Vec<Query<'_>> = queries.collect();
        let kinds = Instructions::ALL
            .into_iter()
            .filter(|kind| kind.available());
        for (instructions, by_tree) in kinds.flat_map(|kind| [(kind, false), (kind, true)]) {
            let search = Search {
                pool: &pool,
                admitted: &|_, _| Some(1.0),
                by_tree,
                instructions,
            };
            let results = search.run(&queries);
            for (&row, result) in query_rows.iter().zip(&results) {
                let expected = two_nearest(&served, |other| {
                    let pairs = points.of(row).iter().zip(points.of(other));
                    pairs.map(|(left, right)| (left - right).powi(2)).sum()
                });
                let neighbours = result.neighbours.iter();
                let mut members: Vec<u32> = neighbours
                    .map(|&(_, point)| pool.members(point as usize)[0])
                    .collect();
                members.sort_unstable();
                assert_eq!(members, expected, "{instructions:?}, by tree: {by_tree}");
            }
        }
    }
}

#[test]
fn a_point_that_was_removed_is_found_no_more() {
    let problem = problem(400);
    let points = embed(&problem);
    let served: Vec<u32> = (0..400).filter(|row| row % 3 > 0).collect();
    let mut pool = Pool::new(&problem, &points, &served, false);
    for rest in (0..pool.points).rev() {
        let search = Search {
            pool: &pool,
            admitted: &|_, _| Some(1.0),
            by_tree: true,
            instructions: Instructions::best(),
        };
        let result = &search.run(&[query(&points, 0, 1.0)])[0];
        let (squared, point) = result.neighbours[0];
        assert!(squared <= result.last && result.enough, "{rest} are left");
        pool.remove(point as usize);
    }
    assert!((0..pool.block_count()).all(|block| pool.block(block)[0].is_infinite()));
}
