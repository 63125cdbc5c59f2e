//! The search of cheap pairs against all pairs.

use super::{CheapSearch, PricedUnits};

struct Numbers(u64);

impl Numbers {
    #[allow(clippy::cast_precision_loss)]
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 31) as f64
    }

    fn many(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.next()).collect()
    }
}

#[test]
fn the_cheap_pairs_are_those_of_all_pairs() {
    let mut numbers = Numbers(3);
    for trial in 0..30 {
        let (lefts, rights, dimensions) = (30, 1 + trial * 20, 1 + trial % 3);
        let width = trial % 2;
        let arrays: Vec<Vec<f64>> = [lefts, rights]
            .iter()
            .flat_map(|&count| {
                [
                    numbers.many(count * dimensions),
                    numbers.many(count * width),
                    numbers.many(count).iter().map(|x| 0.4 * x - 0.2).collect(),
                    numbers.many(count).iter().map(|x| 0.1 * x).collect(),
                ]
            })
            .collect();
        let units = |arm: usize| PricedUnits {
            points: &arrays[4 * arm],
            limited: &arrays[4 * arm + 1],
            prices: &arrays[4 * arm + 2],
            radii: &arrays[4 * arm + 3],
        };
        let limit = 1 + trial % 5;
        let calipers = vec![0.3; width];
        let search = CheapSearch {
            dimensions,
            calipers: &calipers,
            first: units(0),
            second: units(1),
            limits: &vec![limit; lefts],
            max_distance: 0.35,
            threads: 2,
        };
        let mut expected = Vec::new();
        let (first, second) = (units(0), units(1));
        for left in 0..lefts {
            let mut cheap = Vec::new();
            for right in 0..rights {
                let squared: f64 = (0..dimensions)
                    .map(|axis| {
                        first.points[left * dimensions + axis]
                            - second.points[right * dimensions + axis]
                    })
                    .map(|difference| difference * difference)
                    .sum();
                let distance = squared.sqrt();
                let reduced = distance - first.prices[left] - second.prices[right];
                let is_within = (0..width).all(|column| {
                    (first.limited[left * width + column] - second.limited[right * width + column])
                        .abs()
                        <= 0.3
                });
                if reduced < 0.0
                    && distance <= 0.35
                    && is_within
                    && distance >= first.radii[left].max(second.radii[right])
                {
                    cheap.push((reduced, right));
                }
            }
            cheap.sort_by(|one, other| one.0.total_cmp(&other.0));
            cheap.truncate(limit);
            let mut rights: Vec<u32> = cheap
                .iter()
                .map(|&(_, right)| u32::try_from(right).expect("a small number"))
                .collect();
            rights.sort_unstable();
            let left = u32::try_from(left).expect("a small number");
            expected.extend(rights.into_iter().map(|right| (left, right)));
        }
        assert_eq!(search.pairs(&|_, _| true), Some(expected), "{trial}");
    }
}
