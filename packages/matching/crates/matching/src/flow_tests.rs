//! Small flows against all sets of pairs, and flows that grow against flows that start complete.

use super::{Degrees, PairFlow};

/// A generator of small pseudo-random numbers (Knuth's linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % limit).expect("a small number")
    }
}

const PENALTY: i64 = 1_000;

fn degrees(units: usize, minimum: i64, maximum: i64, max_omitted: i64) -> Degrees {
    Degrees {
        minimum: vec![minimum; units],
        maximum: vec![maximum; units],
        rows: vec![1; units],
        max_omitted,
    }
}

fn total(flow: &PairFlow) -> i64 {
    let missing: i64 = flow.missing(0).iter().chain(flow.missing(1)).sum();
    let used = flow.arcs().iter().map(|arc| arc.cost * arc.flow);
    used.sum::<i64>() + PENALTY * missing
}

fn solved(first: &Degrees, second: &Degrees, batches: &[Vec<(u32, u32, i64)>]) -> PairFlow {
    let mut flow = PairFlow::new(first.clone(), second.clone(), PENALTY);
    for batch in batches {
        flow.add(batch.iter().copied());
        while !flow.solve(1) {}
    }
    flow
}

/// The cheapest of all sets of pairs; a missing pair costs the penalty.
fn cheapest(first: &Degrees, second: &Degrees, pairs: &[(u32, u32, i64)]) -> i64 {
    (0_u32..1 << pairs.len())
        .filter_map(|set| {
            let mut counts = [vec![0; first.minimum.len()], vec![0; second.minimum.len()]];
            let mut cost = 0;
            for (index, &(left, right, pair_cost)) in pairs.iter().enumerate() {
                if set >> index & 1 == 1 {
                    counts[0][left as usize] += 1;
                    counts[1][right as usize] += 1;
                    cost += pair_cost;
                }
            }
            for (counts, degrees) in counts.iter().zip([first, second]) {
                let mut omitted = 0;
                for (&count, &minimum) in counts.iter().zip(&degrees.minimum) {
                    if count > degrees.maximum[0] {
                        return None;
                    }
                    if count == 0 && minimum == 1 && omitted < degrees.max_omitted {
                        omitted += 1;
                    } else {
                        cost += PENALTY * (minimum - count).max(0);
                    }
                }
            }
            Some(cost)
        })
        .min()
        .expect("the empty set has a cost")
}

#[test]
fn a_flow_is_the_cheapest_of_all_sets_of_pairs() {
    let mut numbers = Numbers(1);
    for trial in 0_u32..600 {
        let (lefts, rights) = (2 + trial % 2, 3 + trial % 3);
        let maximum = |minimum: i64, numbers: &mut Numbers| minimum + numbers.below(3);
        let minima = [numbers.below(2), numbers.below(2)];
        let first = degrees(
            lefts as usize,
            minima[0],
            maximum(minima[0], &mut numbers),
            numbers.below(2),
        );
        let second = degrees(
            rights as usize,
            minima[1],
            maximum(minima[1], &mut numbers),
            numbers.below(3),
        );
        let mut batches = vec![Vec::new(); 3];
        for left in 0..lefts {
            for right in 0..rights {
                let batch = numbers.below(4);
                if let Ok(batch) = usize::try_from(batch - 1) {
                    batches[batch].push((left, right, numbers.below(20)));
                }
            }
        }
        let pairs: Vec<_> = batches.iter().flatten().copied().collect();
        let best = cheapest(&first, &second, &pairs);
        assert_eq!(total(&solved(&first, &second, &batches)), best, "{trial}");
        assert_eq!(total(&solved(&first, &second, &[pairs])), best, "{trial}");
    }
}

#[test]
fn prices_prove_that_the_flow_is_optimal() {
    let mut numbers = Numbers(7);
    let (first, second) = (degrees(40, 1, 1, 0), degrees(60, 0, 1, 0));
    let mut pairs = Vec::new();
    for left in 0..40 {
        for right in 0..60 {
            pairs.push((left, right, numbers.below(PENALTY.unsigned_abs() / 50)));
        }
    }
    let flow = solved(&first, &second, &[pairs]);
    let (lefts, rights) = (flow.prices(0), flow.prices(1));
    for arc in flow.arcs() {
        let reduced = arc.cost + lefts[arc.first as usize] - rights[arc.second as usize];
        assert!(if arc.flow > 0 {
            reduced <= 0
        } else {
            reduced >= 0
        });
    }
    // The dual value: the prices of the demand, minus those of the supply.
    assert!(rights.iter().all(|&price| price <= 0));
    let used: i64 = rights.iter().sum::<i64>() - lefts.iter().sum::<i64>();
    assert_eq!(used, total(&flow));
}

#[test]
fn the_first_pair_of_each_unit_comes_before_a_second_one() {
    let (first, second) = (degrees(2, 2, 2, 0), degrees(2, 0, 1, 0));
    let pairs = [(0, 0, 1), (0, 1, 2), (1, 0, 900), (1, 1, 800)];
    let flow = solved(&first, &second, &[pairs.to_vec()]);
    assert_eq!(flow.missing(0), [1, 1]);
}

#[test]
fn units_of_several_rows_cost_as_much_as_their_rows_alone() {
    let mut numbers = Numbers(5);
    for trial in 0_u32..100 {
        let counts = [
            vec![1 + numbers.below(3), 1 + numbers.below(3)],
            vec![
                1 + numbers.below(4),
                1 + numbers.below(4),
                1 + numbers.below(4),
            ],
        ];
        let per_row = 1 + i64::from(trial % 2);
        let first = Degrees {
            minimum: counts[0].iter().map(|count| per_row * count).collect(),
            maximum: counts[0].iter().map(|count| per_row * count).collect(),
            rows: counts[0].clone(),
            max_omitted: 0,
        };
        let second = Degrees {
            minimum: vec![0; 3],
            maximum: counts[1].clone(),
            rows: counts[1].clone(),
            max_omitted: 0,
        };
        let costs: Vec<i64> = (0..6).map(|_| numbers.below(20)).collect();
        let cost = |left: usize, right: usize| costs[3 * left + right];
        let mut batches = vec![Vec::new(); 2];
        for left in 0..2_u32 {
            for right in 0..3_u32 {
                let batch = usize::try_from(numbers.below(2)).expect("a small number");
                batches[batch].push((left, right, cost(left as usize, right as usize)));
            }
        }
        let grouped = solved(&first, &second, &batches);
        let rows_of = |counts: &[i64]| -> Vec<usize> {
            let rows = counts.iter().enumerate();
            rows.flat_map(|(unit, &count)| {
                std::iter::repeat_n(unit, usize::try_from(count).expect("a small number"))
            })
            .collect()
        };
        let (lefts, rights) = (rows_of(&counts[0]), rows_of(&counts[1]));
        let mut pairs = Vec::new();
        for (left_row, &left) in (0..).zip(&lefts) {
            for (right_row, &right) in (0..).zip(&rights) {
                pairs.push((left_row, right_row, cost(left, right)));
            }
        }
        let alone = solved(
            &degrees(lefts.len(), per_row, per_row, 0),
            &degrees(rights.len(), 0, 1, 0),
            &[pairs],
        );
        assert_eq!(total(&grouped), total(&alone), "{trial}");
    }
}
