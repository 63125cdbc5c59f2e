//! The covariates to balance: the values of each point, and their ranks among all values.

use crate::fitness::options::{Measure, Options};
use crate::fitness::units::Units;
use crate::problem::to_u32;

/// Values of a point are padded to a multiple of this many columns, for vector instructions.
pub const PADDING: usize = 8;

/// The covariates of the points.
pub struct Covariates {
    pub columns: usize,
    /// Number of values of a point, including the padding with zeros.
    pub stride: usize,
    /// Values, point after point.
    pub values: Vec<f64>,
    /// Indices of the columns whose distributions are compared.
    pub ranked_columns: Vec<usize>,
    /// First rank of each ranked column, then the number of all ranks. Columns share one series.
    pub starts: Vec<usize>,
    /// Ranks of the values in the ranked columns, point after point.
    pub ranks: Vec<u32>,
}

impl Covariates {
    /// Reads the covariates of the points, and ranks the columns whose distributions are compared.
    pub fn new(options: &Options, units: &Units) -> Self {
        let columns = options.columns;
        let stride = columns.next_multiple_of(PADDING);
        let value = |point: usize, column| {
            options.balance[units.first_row[point] as usize * columns + column]
        };
        let mut values = vec![0.0; units.points() * stride];
        for point in 0..units.points() {
            for column in 0..columns {
                values[point * stride + column] = value(point, column);
            }
        }
        let mut ranked_columns = Vec::new();
        let mut starts = vec![0];
        let mut ranks_of_columns = Vec::new();
        for column in 0..columns {
            let is_used = match options.measure {
                Measure::PValues(_) => options.kolmogorov_smirnov,
                Measure::Distance(_, _) => true,
            };
            if !is_used {
                continue;
            }
            let (ranks, distinct) =
                ranks_among((0..units.points()).map(|point| value(point, column)));
            // If a column has at most two values, its mean determines its distribution.
            if distinct < 3 && matches!(options.measure, Measure::PValues(_)) {
                continue;
            }
            let start = starts[ranked_columns.len()];
            ranks_of_columns.push(ranks.into_iter().map(|rank| to_u32(start + rank)).collect());
            starts.push(start + distinct);
            ranked_columns.push(column);
        }
        let ranks_of_columns: Vec<Vec<u32>> = ranks_of_columns;
        let ranks = (0..units.points())
            .flat_map(|point| ranks_of_columns.iter().map(move |ranks| ranks[point]))
            .collect();
        Self {
            columns,
            stride,
            values,
            ranked_columns,
            starts,
            ranks,
        }
    }

    pub fn values_of(&self, point: usize) -> &[f64] {
        &self.values[point * self.stride..(point + 1) * self.stride]
    }

    pub fn ranks_of(&self, point: usize) -> &[u32] {
        let count = self.ranked_columns.len();
        &self.ranks[point * count..(point + 1) * count]
    }
}

/// Returns the rank of each value among the distinct values, and the number of distinct values.
fn ranks_among(values: impl Iterator<Item = f64>) -> (Vec<usize>, usize) {
    let values: Vec<f64> = values.collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
    let mut ranks = vec![0; values.len()];
    let mut distinct = 0;
    let mut previous = f64::NAN;
    for point in order {
        // Zero and negative zero are one value, although the sort separates them.
        if previous.is_nan() || values[point] > previous {
            distinct += 1;
        }
        previous = values[point];
        ranks[point] = distinct - 1;
    }
    (ranks, distinct)
}
