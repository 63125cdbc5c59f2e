//! Tests of the search for a commit, also with commits that do not run.

use super::search::*;

const ALPHA: f64 = 0.05;

fn search(commits: usize, prior: &[f64]) -> Search {
    let gap_blocks: Vec<(f64, f64)> = (0..10)
        .map(|i| {
            (
                0.1 + f64::from(i % 5 - 2) / 100.0,
                1.0 - 2.0 * f64::from(i % 2),
            )
        })
        .collect();
    Search::new(&SearchSettings {
        commits,
        alpha: ALPHA,
        direction: 1.0,
        gap_blocks: &gap_blocks,
        prior,
    })
}

fn block((before, after): (usize, usize), difference: f64) -> PairBlock {
    PairBlock {
        before,
        after,
        difference,
        order: 1.0,
        tolerance: 0.0,
    }
}

/// Runs the chosen pairs until the search ends. The costs have a step at a commit, and noise.
fn run(search: &mut Search, step: usize, blocks: usize) -> usize {
    let built = vec![true; search.excluded_at().len() + 1];
    let mut rank = 0;
    for number in 1..=blocks {
        let pair = search.choose_pair(&built, 0.2);
        let holds = f64::from(u8::from(pair.0 < step && step <= pair.1));
        let noise = ((number * 37) % 23) as f64 / 2000.0 - 0.0055;
        rank += usize::from(search.add(&block(pair, 0.1 * holds + noise), number, rank + 1));
        if search.outcome() != Outcome::Open {
            return number;
        }
    }
    blocks
}

#[test]
fn the_search_finds_the_step_and_excludes_all_other_commits() {
    for step in [1, 2, 37, 63, 64] {
        let mut search = search(64, &[]);
        run(&mut search, step, 200);
        let named = CommitGroup {
            before: step - 1,
            after: step,
        };
        assert_eq!(search.outcome(), Outcome::Culprit(named));
        let excluded = search.excluded_at().iter().flatten().count();
        assert_eq!(excluded, 63);
        assert!(search.own_ln_e_value(step) >= (2.0 / ALPHA).ln());
    }
}

#[test]
fn a_culprit_is_reported_after_six_blocks_of_its_own_pair() {
    let mut search = search(1, &[]);
    assert_eq!(run(&mut search, 1, 200), 6);
}

#[test]
fn a_pair_gives_no_evidence_against_commits_inside_it() {
    let mut search = search(8, &[]);
    search.add(&block((2, 5), 0.1), 1, 1);
    for (index, ln_e) in search.ln_e_values().iter().enumerate() {
        assert_eq!(ln_e.abs() > 0.0, !(2..5).contains(&index), "{index}");
    }
}

#[test]
fn two_steps_are_reported_as_several_with_a_split_between_them() {
    let mut search = search(16, &[]);
    let mut number = 0;
    while search.outcome() == Outcome::Open {
        for pair in [(0, 8), (8, 16)] {
            number += 1;
            search.add(&block(pair, 0.05), number, 1);
        }
        assert!(number < 100);
    }
    assert_eq!(
        search.outcome(),
        Outcome::Several {
            likeliest: None,
            split: 8
        }
    );
}

#[test]
fn a_commit_that_does_not_run_is_in_the_group_of_the_next_that_runs() {
    let mut search = search(16, &[]);
    for commit in [6, 7] {
        search.withdraw(commit);
    }
    run(&mut search, 7, 300);
    let group = CommitGroup {
        before: 5,
        after: 8,
    };
    assert_eq!(search.outcome(), Outcome::Culprit(group));
    let left: Vec<usize> = (1..=16)
        .filter(|&commit| search.excluded_at()[commit - 1].is_none())
        .collect();
    assert_eq!(left, [6, 7, 8]);
}

#[test]
fn the_evidence_of_an_own_pair_restarts_with_a_new_rank_if_its_first_commit_is_removed() {
    let mut search = search(8, &[]);
    assert!(search.add(&block((3, 4), 0.1), 1, 1));
    assert!(!search.add(&block((3, 4), 0.1), 2, 2));
    assert!(search.own_ln_e_value(4) > 0.0);
    search.withdraw(3);
    assert!(search.own_ln_e_value(4).abs() < f64::MIN_POSITIVE);
    assert!(search.add(&block((2, 4), 0.1), 3, 2));
    let threshold = search.own_threshold(4);
    assert!((threshold - (6.0 / ALPHA).ln()).abs() < 1e-12);
}

#[test]
fn another_pair_is_chosen_after_timeouts_of_both_commits() {
    let mut search = search(4, &[]);
    let built = vec![true; 5];
    let first = search.choose_pair(&built, 0.2);
    for number in 1..50 {
        search.add(&block(first, f64::NAN), number, 1);
    }
    assert_ne!(search.choose_pair(&built, 0.2), first);
    assert!(search.ln_e_values().iter().all(|ln_e| ln_e.abs() < 1e-300));
    assert!((1..5).all(|commit| search.own_ln_e_value(commit).abs() < f64::MIN_POSITIVE));
}

#[test]
fn the_search_finds_a_commit_that_causes_timeouts() {
    let gap_blocks = [(f64::INFINITY, 1.0); 8];
    let mut search = Search::new(&SearchSettings {
        commits: 32,
        alpha: ALPHA,
        direction: 1.0,
        gap_blocks: &gap_blocks,
        prior: &[],
    });
    let built = vec![true; 33];
    for number in 1..200 {
        let (before, after) = search.choose_pair(&built, 0.2);
        let noise = ((number * 37) % 23) as f64 / 2000.0 - 0.0055;
        let times_out = |commit: usize| commit >= 11;
        let difference = match (times_out(before), times_out(after)) {
            (true, true) => f64::NAN,
            (false, true) => f64::INFINITY,
            _ => noise,
        };
        search.add(&block((before, after), difference), number, 1);
        if search.outcome() != Outcome::Open {
            break;
        }
    }
    let named = CommitGroup {
        before: 10,
        after: 11,
    };
    assert_eq!(search.outcome(), Outcome::Culprit(named));
}

#[test]
fn each_prior_chance_is_at_least_a_tenth_of_an_equal_share() {
    let mut chances = vec![0.0; 10];
    chances[3] = 1.0;
    let chances_of_commits = search(10, &chances).chances();
    let sum = 1.0 + 9.0 * 0.01;
    assert!((chances_of_commits[3] - 1.0 / sum).abs() < 1e-12);
    assert!((chances_of_commits[0] - 0.01 / sum).abs() < 1e-12);
}

#[test]
fn pairs_of_built_commits_are_chosen_if_builds_are_costly() {
    let search = search(128, &[]);
    let mut built = vec![false; 129];
    for commit in [0, 60, 128] {
        built[commit] = true;
    }
    let (before, after) = search.choose_pair(&built, 4.0);
    assert!(built[before] && built[after], "{before} {after}");
}

#[test]
fn a_gap_of_the_other_sign_gives_the_same_evidence() {
    let slower = [
        (0.1, 1.0),
        (0.11, -1.0),
        (0.09, 1.0),
        (0.1, -1.0),
        (0.12, 1.0),
    ];
    let faster = slower.map(|(difference, order)| (-difference, -order));
    let start_search = |direction: f64, gap_blocks: &[(f64, f64)]| {
        Search::new(&SearchSettings {
            commits: 4,
            alpha: ALPHA,
            direction,
            gap_blocks,
            prior: &[],
        })
    };
    let mut one = start_search(1.0, &slower);
    let mut other = start_search(-1.0, &faster);
    for number in 1..9 {
        let noise = ((number * 37) % 23) as f64 / 1000.0;
        one.add(&block((1, 3), 0.1 - noise), number, 1);
        let mirrored = PairBlock {
            order: -1.0,
            ..block((1, 3), noise - 0.1)
        };
        other.add(&mirrored, number, 1);
    }
    assert_eq!(one.ln_e_values(), other.ln_e_values());
}
