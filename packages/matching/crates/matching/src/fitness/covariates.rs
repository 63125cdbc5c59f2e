//! The covariates that are to be balanced, of each point, and the places of their values in order.

use crate::fitness::options::{Measure, Options};
use crate::fitness::units::Units;
use crate::problem::small;

/// Values are padded to a multiple of this many columns, for the processor.
pub const PAD: usize = 8;

/// The covariates of the points.
pub struct Covariates {
    /// Number of covariates.
    pub columns: usize,
    /// The length of a point's values, padded with zeros.
    pub stride: usize,
    /// Point after point.
    pub values: Vec<f64>,
    /// Which columns' distributions are compared.
    pub ranked: Vec<usize>,
    /// For each ranked column the first of its places; after them the number of all places.
    pub starts: Vec<usize>,
    /// For each point the places of its values in the ranked columns.
    pub places: Vec<u32>,
}

impl Covariates {
    /// The covariates, and their ranks where distributions are compared.
    pub fn new(options: &Options, units: &Units) -> Self {
        let columns = options.columns;
        let stride = columns.next_multiple_of(PAD);
        let value =
            |point: usize, column| options.balance[units.row[point] as usize * columns + column];
        let mut values = vec![0.0; units.points() * stride];
        for point in 0..units.points() {
            for column in 0..columns {
                values[point * stride + column] = value(point, column);
            }
        }
        let mut ranked = Vec::new();
        let mut starts = vec![0];
        let mut of_columns = Vec::new();
        for column in 0..columns {
            let is_used = match options.measure {
                Measure::PValues(_) => options.kolmogorov_smirnov,
                Measure::Distance(_, _) => true,
            };
            if !is_used {
                continue;
            }
            let (ranks, distinct) = ranks((0..units.points()).map(|point| value(point, column)));
            // With at most two values, the test of the means is enough.
            if distinct < 3 && matches!(options.measure, Measure::PValues(_)) {
                continue;
            }
            let start = starts[ranked.len()];
            of_columns.push(ranks.into_iter().map(|rank| small(start + rank)).collect());
            starts.push(start + distinct);
            ranked.push(column);
        }
        let of_columns: Vec<Vec<u32>> = of_columns;
        let places = (0..units.points())
            .flat_map(|point| of_columns.iter().map(move |places| places[point]))
            .collect();
        Self {
            columns,
            stride,
            values,
            ranked,
            starts,
            places,
        }
    }

    /// The values of a point.
    pub fn of(&self, point: usize) -> &[f64] {
        &self.values[point * self.stride..(point + 1) * self.stride]
    }

    /// The places of a point's values.
    pub fn places_of(&self, point: usize) -> &[u32] {
        let count = self.ranked.len();
        &self.places[point * count..(point + 1) * count]
    }
}

/// The rank of each value among the distinct values, and the number of those.
fn ranks(values: impl Iterator<Item = f64>) -> (Vec<usize>, usize) {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0; values.len()];
    let mut distinct = 0;
    let mut before = f64::NAN;
    for point in order {
        // Zero and negative zero are one value, although the sort separates them.
        if before.is_nan() || values[point] > before {
            distinct += 1;
        }
        before = values[point];
        ranks[point] = distinct - 1;
    }
    (ranks, distinct)
}
