//! Distances of the distributions of the matched treated and the matched controls.
//!
//! Every pair counts one row of each arm, at any weight; so both samples have the same size, and
//! distances are whole numbers of rows.

use crate::fitness::covariates::Covariates;
use crate::fitness::kolmogorov::{EXACT_BELOW, asymptotic, exact};
use crate::fitness::links::Link;
use crate::fitness::options::Within;
use crate::random::Draws;

/// Number of times that each point is in a pair, and the distributions that follow.
#[derive(Default)]
pub struct Distributions {
    /// Number of times that each point is in a pair.
    pub count: Vec<u64>,
    /// Number of pairs.
    pub pairs: u64,
    /// At each place, the treated rows less the controls that have this value.
    steps: Vec<i64>,
    /// Both together.
    rows: Vec<u64>,
}

impl Distributions {
    /// Forgets everything.
    pub fn start(&mut self, points: usize) {
        self.count.clear();
        self.count.resize(points, 0);
        self.pairs = 0;
    }

    /// Adds links.
    pub fn add(&mut self, links: &[Link]) {
        for link in links {
            self.count[link.treated as usize] += link.count;
            self.count[link.control as usize] += link.count;
            self.pairs += link.count;
        }
    }

    /// Puts the rows in their places, once all links are added; controls come first.
    pub fn place(&mut self, covariates: &Covariates, controls: usize) {
        let counts = std::mem::take(&mut self.count);
        let net = counts.iter().enumerate().map(|(point, &count)| {
            let count = count.cast_signed();
            if point < controls { -count } else { count }
        });
        self.steps_of(covariates, net);
        self.count = counts;
    }

    /// Puts a number for each point in its places.
    pub fn steps_of(&mut self, covariates: &Covariates, net: impl Iterator<Item = i64>) {
        self.steps.clear();
        self.steps
            .resize(covariates.starts[covariates.ranked.len()], 0);
        for (point, step) in net.enumerate() {
            if step == 0 {
                continue;
            }
            for &place in covariates.places_of(point) {
                self.steps[place as usize] += step;
            }
        }
    }

    /// Counts the rows of both arms together in each place.
    fn place_rows(&mut self, covariates: &Covariates) {
        self.rows.clear();
        self.rows
            .resize(covariates.starts[covariates.ranked.len()], 0);
        for (point, &count) in self.count.iter().enumerate() {
            if count == 0 {
                continue;
            }
            for &place in covariates.places_of(point) {
                self.rows[place as usize] += count;
            }
        }
    }

    /// The largest distance in each ranked column, in rows.
    pub fn largest(&self, covariates: &Covariates, into: &mut Vec<u64>) {
        into.clear();
        for bounds in covariates.starts.windows(2) {
            let mut height = 0_i64;
            let mut largest = 0;
            for step in &self.steps[bounds[0]..bounds[1]] {
                height += step;
                largest = largest.max(height.unsigned_abs());
            }
            into.push(largest);
        }
    }

    /// The p-value of each ranked column's test; an asymptotic p-value has R's digits, so that
    /// fitness can be compared with R's.
    pub fn p_values(&mut self, covariates: &Covariates, into: &mut Vec<f64>) {
        let mut largest = Vec::new();
        self.largest(covariates, &mut largest);
        if self.pairs.saturating_mul(self.pairs) < EXACT_BELOW {
            self.place_rows(covariates);
            for (bounds, reach) in covariates.starts.windows(2).zip(largest) {
                let mut ends = Vec::new();
                let mut end = 0;
                for &rows in &self.rows[bounds[0]..bounds[1]] {
                    if rows > 0 {
                        end += usize::try_from(rows).expect("fewer than 200 rows");
                        ends.push(end);
                    }
                }
                let size = end / 2;
                into.push(exact(reach * size as u64, size, size, &ends));
            }
            return;
        }
        let pairs = self.pairs as f64;
        into.extend(
            largest
                .into_iter()
                .map(|largest| asymptotic((pairs / 2.0).sqrt() * (largest as f64 / pairs), true)),
        );
    }

    /// The mean, median or largest distance in each ranked column, over the values that occur.
    pub fn distances(&mut self, covariates: &Covariates, within: Within, into: &mut Vec<f64>) {
        self.place_rows(covariates);
        let pairs = self.pairs as f64;
        for bounds in covariates.starts.windows(2) {
            let mut height = 0;
            let mut heights = Vec::new();
            for place in bounds[0]..bounds[1] {
                if self.rows[place] > 0 {
                    height += self.steps[place];
                    heights.push(height.unsigned_abs() as f64);
                }
            }
            let rows = match within {
                Within::Mean => heights.iter().sum::<f64>() / heights.len() as f64,
                Within::Median => median(&mut heights),
                Within::Largest => heights.iter().copied().fold(0.0, f64::max),
            };
            into.push(rows / pairs);
        }
    }
}

/// The median, of two the mean; the values are reordered.
pub fn median(values: &mut [f64]) -> f64 {
    let half = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if even {
        let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        f64::midpoint(lower, upper)
    } else {
        upper
    }
}

/// The bootstrap of the Kolmogorov-Smirnov test (Abadie 2002, Journal of the American Statistical
/// Association 97, 284-292), the same rows for every covariate: the share of `samples` samples from both arms together whose distance reaches the observed one,
/// for each ranked column.
///
/// The draws depend on the seed, the sample's number and the place of the row alone: neither
/// threads nor the order of the candidates change a p-value.
pub fn bootstrap_p_values(
    observed: &Distributions,
    covariates: &Covariates,
    samples: usize,
    seed: u64,
    into: &mut Vec<f64>,
) {
    // Number of rows up to each point; a drawn row is searched among these numbers.
    let mut rows = 0;
    let ends: Vec<u64> = observed
        .count
        .iter()
        .map(|&count| {
            rows += count;
            rows
        })
        .collect();
    let size = usize::try_from(rows).expect("fewer rows than addresses");
    let mut distances = Vec::new();
    observed.largest(covariates, &mut distances);
    let mut reached = vec![0_usize; distances.len()];
    let mut largest = Vec::new();
    let mut net = vec![0_i64; ends.len()];
    let mut resampled = Distributions::default();
    for sample in 0..samples {
        let mut random = Draws::of(seed, sample);
        net.fill(0);
        for place in 0..size {
            let row = random.below(size) as u64;
            let point = ends.partition_point(|&end| end <= row);
            net[point] += if place < size / 2 { 1 } else { -1 };
        }
        resampled.steps_of(covariates, net.iter().copied());
        resampled.largest(covariates, &mut largest);
        for ((reached, largest), observed) in reached.iter_mut().zip(&largest).zip(&distances) {
            *reached += usize::from(largest >= observed);
        }
    }
    into.extend(
        reached
            .iter()
            .map(|&reached| reached as f64 / samples as f64),
    );
}
