//! Matching on a score gives the pairs of a search through all free donors.

use super::{ScoreOrder, ScoreProblem};
use crate::random::Draws;

/// The data of a problem, with many equal scores.
struct Data {
    score: Vec<f64>,
    is_taker: Vec<bool>,
    cells: Vec<u32>,
}

fn data(seed: u64, rows: usize) -> Data {
    let mut draws = Draws::new(seed, rows);
    let range = [5, 40, 100_000][draws.below(3)];
    Data {
        score: (0..rows).map(|_| draws.below(range) as f64).collect(),
        is_taker: (0..rows).map(|_| draws.below(3) == 0).collect(),
        cells: (0..rows)
            .map(|_| u32::from(draws.below(4) == 0) * 7)
            .collect(),
    }
}

fn problem(data: &Data, order: ScoreOrder, matches: usize, caliper: f64) -> ScoreProblem<'_> {
    ScoreProblem {
        score: &data.score,
        is_taker: &data.is_taker,
        cells: Some(&data.cells),
        matches,
        caliper,
        order,
        replace: false,
        threads: 1,
    }
}

/// Returns for a taker its possible donors: distance, taker and donor.
fn candidates(problem: &ScoreProblem<'_>, taker: u32, free: &[bool]) -> Vec<(u64, u32, u32)> {
    let cells = problem.cells.expect("the data have cells");
    let row = taker as usize;
    let mut candidates = Vec::new();
    for donor in 0..problem.score.len() {
        let distance = (problem.score[row] - problem.score[donor]).abs();
        if free[donor] && cells[donor] == cells[row] && distance <= problem.caliper {
            candidates.push((distance.to_bits(), taker, super::to_u32(donor)));
        }
    }
    candidates.sort_unstable();
    candidates
}

fn pairs_by_search(problem: &ScoreProblem<'_>) -> Vec<(u32, u32)> {
    let mut free: Vec<bool> = problem.is_taker.iter().map(|is_taker| !is_taker).collect();
    let mut takers: Vec<u32> = (0..super::to_u32(free.len()))
        .filter(|&row| problem.is_taker[row as usize])
        .collect();
    let score = |row: u32| problem.score[row as usize];
    match problem.order {
        ScoreOrder::Largest => takers.sort_by(|&l, &r| score(r).total_cmp(&score(l))),
        ScoreOrder::Smallest => takers.sort_by(|&l, &r| score(l).total_cmp(&score(r))),
        _ => {}
    }
    let mut pairs = Vec::new();
    for _ in 0..problem.matches {
        let mut waiting = takers.clone();
        while !waiting.is_empty() {
            let next = if problem.order == ScoreOrder::Closest {
                let nearest = |&taker: &u32| candidates(problem, taker, &free).first().copied();
                waiting.iter().filter_map(nearest).min()
            } else {
                let taker = waiting.remove(0);
                let found = candidates(problem, taker, &free).first().copied();
                if found.is_none() {
                    continue;
                }
                found
            };
            let Some((_, taker, donor)) = next else {
                break;
            };
            waiting.retain(|&other| other != taker);
            free[donor as usize] = false;
            pairs.push((taker, donor));
        }
    }
    pairs.sort_by_key(|&(taker, _)| taker);
    pairs
}

#[test]
fn each_taker_takes_its_nearest_free_donor() {
    for seed in 0..60 {
        let data = data(seed, 10 + 3 * usize::try_from(seed).expect("small"));
        for order in [
            ScoreOrder::Largest,
            ScoreOrder::Smallest,
            ScoreOrder::Data,
            ScoreOrder::Closest,
        ] {
            for (matches, caliper) in [(1, f64::INFINITY), (2, 3.0), (3, 0.0)] {
                let problem = problem(&data, order, matches, caliper);
                let found = problem.pairs(&|_, _| true).expect("not stopped");
                assert_eq!(
                    found,
                    pairs_by_search(&problem),
                    "{seed} {order:?} {matches}"
                );
            }
        }
    }
}

#[test]
fn with_replacement_each_taker_has_its_nearest_donors() {
    for seed in 0..60 {
        let data = data(seed, 80);
        for (matches, caliper) in [(1, f64::INFINITY), (4, 2.0)] {
            let mut problem = problem(&data, ScoreOrder::Data, matches, caliper);
            problem.replace = true;
            let is_donor: Vec<bool> = data.is_taker.iter().map(|taker| !taker).collect();
            let mut expected = Vec::new();
            for taker in (0..80).filter(|&row| data.is_taker[row as usize]) {
                let nearest = candidates(&problem, taker, &is_donor).into_iter();
                expected.extend(
                    nearest
                        .take(matches)
                        .map(|(_, taker, donor)| (taker, donor)),
                );
            }
            assert_eq!(problem.pairs(&|_, _| true), Some(expected), "{seed}");
        }
    }
}

#[test]
fn a_random_order_depends_on_the_seed_alone() {
    let data = data(1, 90);
    let pairs = |seed: u64, threads: usize| {
        let mut problem = problem(&data, ScoreOrder::Random(seed), 1, f64::INFINITY);
        problem.threads = threads;
        problem.pairs(&|_, _| true)
    };
    assert_eq!(pairs(5, 1), pairs(5, 2));
    assert!((0..20).any(|seed| pairs(seed, 1) != pairs(5, 1)));
}
