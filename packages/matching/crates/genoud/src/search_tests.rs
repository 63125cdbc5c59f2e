//! The search, with a caller that answers its steps.

use super::*;
use crate::domain::Domain;
use crate::random::Generator;

fn options() -> Options {
    Options {
        domain: Domain::new(vec![-1.0; 2], vec![1.0; 2], false).unwrap(),
        boundary: Boundary::Candidates,
        direction: Direction::Minimize,
        population: 20,
        generations: 4,
        hard_generation_limit: true,
        wait_generations: 10,
        solution_tolerance: 1e-3,
        starting_values: vec![vec![0.5, 0.5]],
        // All operators except the local-minimum crossover.
        operators: [50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 0.0],
        mix: None,
        polish: false,
        burn_in: 0,
        gradient_check: false,
        memory: true,
        generator: Generator::Philox,
        seed: 1,
    }
}

fn bowl(point: &[f64]) -> f64 {
    point.iter().map(|value| value * value).sum()
}

/// Answers all steps. Polishing halves a point, and the gradient is small near the origin.
fn run(mut search: Search, value: impl Fn(&[f64]) -> f64) -> Search {
    loop {
        match search.ask().clone() {
            Step::Evaluate(points) => {
                let values: Vec<f64> = points.iter().map(|point| value(point)).collect();
                search.tell(&values, 1).unwrap();
            }
            Step::Polish(starts) => {
                let halved = starts.into_iter().map(|start| {
                    let point: Vec<f64> = start.iter().map(|value| value / 2.0).collect();
                    let values = vec![value(&point)];
                    Candidate { point, values }
                });
                search.tell_polished(halved.collect()).unwrap();
            }
            Step::Gradient(point) => search.tell_gradient(bowl(&point) < 1e-6).unwrap(),
            Step::Done(_) => return search,
        }
    }
}

/// The numbers were recorded once; they must never change, on any architecture.
#[test]
fn a_seed_always_gives_the_recorded_result() {
    let best = |generator| {
        let options = Options {
            generator,
            ..options()
        };
        let search = run(Search::new(options).unwrap(), bowl);
        let best = &search.population()[0];
        [best.point[0].to_bits(), best.point[1].to_bits()]
    };
    assert_eq!(
        best(Generator::Philox),
        [4_578_361_127_835_779_946, 4_584_520_634_845_230_844]
    );
    assert_eq!(
        best(Generator::Tausworthe),
        [4_588_681_562_656_075_634, 4_591_643_071_526_784_762]
    );
}

#[test]
fn asking_twice_returns_the_same_step() {
    let search = Search::new(options()).unwrap();
    assert_eq!(search.ask(), search.ask());
    let Step::Evaluate(points) = search.ask() else {
        panic!("the first generation has no values yet");
    };
    assert_eq!(points.len(), search.counts().population);
    assert_eq!(points[0], [0.5, 0.5]);
}

#[test]
fn an_answer_that_does_not_fit_the_step_is_refused() {
    let mut search = Search::new(options()).unwrap();
    assert!(search.tell(&[1.0], 1).is_err());
    assert!(search.tell_gradient(true).is_err());
    assert!(search.tell_polished(Vec::new()).is_err());
    let values = vec![1.0; search.counts().population];
    search.tell(&values, 1).unwrap();
    let Step::Evaluate(points) = search.ask() else {
        panic!("children are evaluated next");
    };
    let twice = vec![1.0; 2 * points.len()];
    assert!(search.tell(&twice, 2).is_err());
}

#[test]
fn the_best_is_polished_after_the_burn_in_and_kept_if_better() {
    let options = Options {
        polish: true,
        burn_in: 2,
        operators: [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        ..options()
    };
    let search = run(Search::new(options).unwrap(), bowl);
    let history = search.history().iter();
    let best: Vec<f64> = history.map(|record| bowl(&record.best.point)).collect();
    // Halving a point quarters its value; a mutation may improve it further.
    assert!(best[3] <= best[2] / 4.0);
    assert!(best[4] <= best[3] / 4.0);
}

#[test]
fn once_the_best_is_polished_in_vain_other_candidates_are_polished() {
    let options = Options {
        polish: true,
        generations: 20,
        wait_generations: 20,
        ..options()
    };
    let mut search = Search::new(options).unwrap();
    // Polishing changes nothing, so it is always in vain.
    let mut ranks = Vec::new();
    while *search.ask() != Step::Done(Stop::GenerationLimit) {
        match search.ask().clone() {
            Step::Evaluate(points) => {
                let values: Vec<f64> = points.iter().map(|point| bowl(point)).collect();
                search.tell(&values, 1).unwrap();
            }
            Step::Polish(starts) => {
                let same = |candidate: &&Candidate| candidate.point == starts[0];
                let rank = search.population().iter().position(|other| same(&other));
                ranks.push(rank.unwrap());
                let polished = search.population()[rank.unwrap()].clone();
                search.tell_polished(vec![polished]).unwrap();
            }
            step => panic!("{step:?}"),
        }
    }
    assert_eq!(ranks[0], 0);
    assert!(ranks.iter().any(|&rank| rank > 0));
    // A new best is polished before any other.
    assert!(ranks.iter().filter(|&&rank| rank == 0).count() > 1);
}

#[test]
fn a_higher_peak_replaces_the_best_whatever_its_rank() {
    let options = Options {
        polish: true,
        generations: 20,
        wait_generations: 20,
        ..options()
    };
    let mut search = Search::new(options).unwrap();
    let mut has_replaced = false;
    loop {
        match search.ask().clone() {
            Step::Evaluate(points) => {
                let values: Vec<f64> = points.iter().map(|point| bowl(point)).collect();
                search.tell(&values, 1).unwrap();
            }
            Step::Polish(starts) if starts[0] == search.population()[0].point => {
                let best = search.population()[0].clone();
                search.tell_polished(vec![best]).unwrap();
            }
            Step::Polish(_) => {
                let peak = Candidate {
                    point: vec![0.25, 0.25],
                    values: vec![-1.0],
                };
                search.tell_polished(vec![peak.clone()]).unwrap();
                assert_eq!(search.population()[0], peak);
                has_replaced = true;
            }
            _ => break,
        }
    }
    assert!(has_replaced);
}

#[test]
fn a_polished_point_outside_the_bounds_is_rejected_if_they_are_enforced() {
    for (boundary, is_accepted) in [
        (Boundary::RandomPoints, true),
        (Boundary::Candidates, false),
    ] {
        let options = Options {
            polish: true,
            boundary,
            ..options()
        };
        let mut search = Search::new(options).unwrap();
        while let Step::Evaluate(points) = search.ask() {
            let values = vec![1.0; points.len()];
            search.tell(&values, 1).unwrap();
        }
        let outside = Candidate {
            point: vec![3.0, 0.0],
            values: vec![0.0],
        };
        search.tell_polished(vec![outside.clone()]).unwrap();
        assert_eq!(search.population()[0] == outside, is_accepted);
    }
}

#[test]
fn generations_count_as_waiting_only_if_the_gradient_is_small() {
    let generations = |gradient_check| {
        let options = Options {
            gradient_check,
            wait_generations: 2,
            generations: 40,
            starting_values: vec![vec![1.0, 1.0]],
            ..options()
        };
        // Equal values never improve, and the gradient is large far from the origin.
        run(Search::new(options).unwrap(), |_| 1.0).generation()
    };
    assert_eq!(generations(false), 3);
    assert_eq!(generations(true), 40);
}

#[test]
fn points_with_nan_values_lose() {
    let search = run(Search::new(options()).unwrap(), |point| {
        if point[0] < 0.25 { f64::NAN } else { point[0] }
    });
    assert!(search.population()[0].point[0] >= 0.25);
}

#[test]
fn the_local_minimum_crossover_polishes_its_parents() {
    let options = Options {
        operators: [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        mix: Some(1.0),
        generations: 1,
        ..options()
    };
    let search = run(Search::new(options).unwrap(), bowl);
    // Halving a point quarters its value.
    let [before, after] = [0, 1].map(|index| bowl(&search.history()[index].best.point));
    assert!((after - before / 4.0).abs() < 1e-15);
}

#[test]
fn the_memory_treats_zero_and_negative_zero_as_equal() {
    let mut memory = Memory::default();
    memory.learn(&[-0.0, 1.0], &[5.0]);
    assert_eq!(memory.recall(&[0.0, 1.0]), Some(&[5.0][..]));
    assert_eq!(memory.recall(&[0.0, 1.0 + f64::EPSILON]), None);
}
