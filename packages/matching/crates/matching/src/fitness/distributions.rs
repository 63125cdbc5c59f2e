//! Compares the distributions of the covariates among matched treated units and matched controls.
//!
//! Every pair counts one row of each arm, whatever the weight of the pair. So both samples have the
//! same size, and the distance of two distribution functions is a whole number of rows. The steps
//! of a column are the changes of this distance from one rank of its values to the next.

use crate::fitness::covariates::Covariates;
use crate::fitness::kolmogorov::{EXACT_BELOW, asymptotic, exact};
use crate::fitness::links::Link;
use crate::fitness::options::WithinColumn;
use crate::random::Draws;

/// How often each point is in a pair, and the resulting distributions of the covariates.
#[derive(Default)]
pub struct Distributions {
    /// Number of pairs with each point.
    pub pair_count: Vec<u64>,
    /// Number of pairs, and so of the rows in each sample.
    pub pairs: u64,
    /// For each rank, the number of treated rows minus the number of controls.
    steps: Vec<i64>,
    /// For each rank, the number of rows of both arms.
    rows: Vec<u64>,
}

impl Distributions {
    pub fn start(&mut self, points: usize) {
        self.pair_count.clear();
        self.pair_count.resize(points, 0);
        self.pairs = 0;
    }

    pub fn add(&mut self, links: &[Link]) {
        for link in links {
            self.pair_count[link.treated as usize] += link.count;
            self.pair_count[link.control as usize] += link.count;
            self.pairs += link.count;
        }
    }

    /// Computes the steps of the distributions, after all links were added. Controls come first.
    pub fn compute_steps(&mut self, covariates: &Covariates, controls: usize) {
        let counts = std::mem::take(&mut self.pair_count);
        let point_steps = counts.iter().enumerate().map(|(point, &count)| {
            let count = count.cast_signed();
            if point < controls { -count } else { count }
        });
        self.set_steps(covariates, point_steps);
        self.pair_count = counts;
    }

    /// Computes the steps from `point_steps`: the number of treated rows minus controls of each
    /// point. Each number is added at the ranks of the point's values.
    pub fn set_steps(&mut self, covariates: &Covariates, point_steps: impl Iterator<Item = i64>) {
        self.steps.clear();
        self.steps
            .resize(covariates.starts[covariates.ranked_columns.len()], 0);
        for (point, step) in point_steps.enumerate() {
            if step == 0 {
                continue;
            }
            for &rank in covariates.ranks_of(point) {
                self.steps[rank as usize] += step;
            }
        }
    }

    fn count_rows(&mut self, covariates: &Covariates) {
        self.rows.clear();
        self.rows
            .resize(covariates.starts[covariates.ranked_columns.len()], 0);
        for (point, &count) in self.pair_count.iter().enumerate() {
            if count == 0 {
                continue;
            }
            for &rank in covariates.ranks_of(point) {
                self.rows[rank as usize] += count;
            }
        }
    }

    /// Computes the largest distance between the distributions of each ranked column, in rows.
    pub fn largest_distances(&self, covariates: &Covariates, output: &mut Vec<u64>) {
        output.clear();
        for bounds in covariates.starts.windows(2) {
            let mut distance = 0_i64;
            let mut largest = 0;
            for step in &self.steps[bounds[0]..bounds[1]] {
                distance += step;
                largest = largest.max(distance.unsigned_abs());
            }
            output.push(largest);
        }
    }

    /// Computes the p-value of the Kolmogorov-Smirnov test of each ranked column. An asymptotic
    /// p-value is computed as in R, so that the fitness can be compared with the fitness of R.
    pub fn p_values(&mut self, covariates: &Covariates, output: &mut Vec<f64>) {
        let mut largest = Vec::new();
        self.largest_distances(covariates, &mut largest);
        if self.pairs.saturating_mul(self.pairs) < EXACT_BELOW {
            self.count_rows(covariates);
            for (bounds, distance) in covariates.starts.windows(2).zip(largest) {
                let mut ends = Vec::new();
                let mut end = 0;
                for &rows in &self.rows[bounds[0]..bounds[1]] {
                    if rows > 0 {
                        end += usize::try_from(rows).expect("fewer than 200 rows");
                        ends.push(end);
                    }
                }
                let size = end / 2;
                output.push(exact(distance * size as u64, size, size, &ends));
            }
            return;
        }
        let pairs = self.pairs as f64;
        for distance in largest {
            let x = (pairs / 2.0).sqrt() * (distance as f64 / pairs);
            output.push(asymptotic(x, true));
        }
    }

    /// Computes the mean, median or largest distance over the values of each ranked column.
    pub fn distances(
        &mut self,
        covariates: &Covariates,
        within: WithinColumn,
        output: &mut Vec<f64>,
    ) {
        self.count_rows(covariates);
        let pairs = self.pairs as f64;
        for bounds in covariates.starts.windows(2) {
            let mut distance = 0;
            let mut distances = Vec::new();
            for rank in bounds[0]..bounds[1] {
                if self.rows[rank] > 0 {
                    distance += self.steps[rank];
                    distances.push(distance.unsigned_abs() as f64);
                }
            }
            let column_distance = match within {
                WithinColumn::Mean => distances.iter().sum::<f64>() / distances.len() as f64,
                WithinColumn::Median => median(&mut distances),
                WithinColumn::Largest => distances.iter().copied().fold(0.0, f64::max),
            };
            output.push(column_distance / pairs);
        }
    }
}

/// Returns the median. The values are reordered.
pub fn median(values: &mut [f64]) -> f64 {
    let half = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if is_even {
        let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        f64::midpoint(lower, upper)
    } else {
        upper
    }
}

/// Computes the bootstrap p-value of the Kolmogorov-Smirnov test of each ranked column (Abadie
/// 2002, Journal of the American Statistical Association 97, 284-292): the share of `samples` from
/// both arms together whose distance is at least the observed distance. All columns use the same
/// drawn rows, which depend only on the seed and the sample's number.
pub fn bootstrap_p_values(
    observed: &Distributions,
    covariates: &Covariates,
    samples: usize,
    seed: u64,
    output: &mut Vec<f64>,
) {
    // `ends` has the number of rows up to each point, to find the point of a drawn row.
    let mut rows = 0;
    let ends: Vec<u64> = observed
        .pair_count
        .iter()
        .map(|&count| {
            rows += count;
            rows
        })
        .collect();
    let size = usize::try_from(rows).expect("fewer rows than addresses");
    let mut distances = Vec::new();
    observed.largest_distances(covariates, &mut distances);
    let mut reached_counts = vec![0_usize; distances.len()];
    let mut largest = Vec::new();
    let mut point_steps = vec![0_i64; ends.len()];
    let mut resampled = Distributions::default();
    for sample in 0..samples {
        let mut random = Draws::new(seed, sample);
        point_steps.fill(0);
        for draw in 0..size {
            let row = random.below(size) as u64;
            let point = ends.partition_point(|&end| end <= row);
            point_steps[point] += if draw < size / 2 { 1 } else { -1 };
        }
        resampled.set_steps(covariates, point_steps.iter().copied());
        resampled.largest_distances(covariates, &mut largest);
        let pairs = largest.iter().zip(&distances);
        for (count, (largest, observed)) in reached_counts.iter_mut().zip(pairs) {
            *count += usize::from(largest >= observed);
        }
    }
    let p_value = |&count: &usize| count as f64 / samples as f64;
    output.extend(reached_counts.iter().map(p_value));
}
