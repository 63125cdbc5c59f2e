//! The bootstrap of the Kolmogorov-Smirnov test (Abadie 2002, Journal of the American Statistical
//! Association 97, 284-292), the same rows for every covariate.
//!
//! What is drawn depends on the seed, the sample's number and the place of the row alone: neither
//! threads nor the order of the candidates change a p-value.

use crate::fitness::covariates::Covariates;
use crate::fitness::distributions::Distributions;
use crate::random::Draws;

/// The share of `samples` samples from both arms together whose distance reaches the observed one,
/// for each ranked column.
pub fn p_values(
    observed: &Distributions,
    covariates: &Covariates,
    samples: usize,
    seed: u64,
    into: &mut Vec<f64>,
) {
    // How many rows lie up to each point: a row that is drawn is sought among these.
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
