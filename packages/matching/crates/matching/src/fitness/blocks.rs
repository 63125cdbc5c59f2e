//! Points in blocks of sixteen for vector instructions.
//!
//! A candidate stretches the points: each column is multiplied by a factor from its weight. A query
//! is a point whose neighbours are searched. A batch is sixteen blocks. The box of a block has the
//! lowest and the highest value of its points in each column.

use std::ops::Range;

/// Number of queries that are compared with a block together.
pub const QUERIES: usize = 8;
/// Number of points of a block, whose distances are computed together.
pub const LANES: usize = 16;
/// The coordinates of a point are padded with zeros to a multiple of this number.
const PADDING: usize = 8;
/// Largest rounding error in single precision of the distance of two points in the unit ball. The
/// coordinates and their difference are each rounded to 24 bits.
const DISTANCE_ROUNDING: f64 = 3e-7;
/// Largest relative rounding error that each coordinate adds to a squared distance.
const TERM_ROUNDING: f64 = 1.3e-7;

/// Standardised points of one arm.
pub struct Blocks {
    columns: usize,
    /// Coordinates, point after point, each padded with zeros.
    standardised: Vec<f64>,
    /// Coordinates, block after block and column after column in a block; NaN after the last point.
    transposed: Vec<f64>,
    /// The largest absolute value of each column.
    largest: Vec<f64>,
    /// Low ends of the boxes, batch after batch and column after column in a batch.
    low: Vec<f64>,
    /// High ends of the boxes, in the same order.
    high: Vec<f64>,
}

/// The points of one arm under one candidate.
#[derive(Default)]
pub struct StretchedPoints {
    pub axes: usize,
    /// Coordinates, block after block and axis after axis, scaled into the unit ball.
    pub blocks: Vec<f32>,
    /// Low ends of the boxes, batch after batch and axis after axis in a batch.
    pub low: Vec<f32>,
    /// High ends of the boxes, in the same order.
    pub high: Vec<f32>,
}

/// The factors by which a candidate stretches the columns.
pub struct ColumnScale {
    /// The weights, padded with zeros.
    weights: Vec<f64>,
    /// Factors that scale each column into the unit ball.
    factors: Vec<f64>,
    /// A radius around the mean of all points that contains every point.
    radius: f64,
}

impl ColumnScale {
    /// Returns the squared distance of two standardised points in double precision.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It is the inner loop, and gets its caller's instructions.
    pub fn squared_distance(&self, point: &[f64], other: &[f64]) -> f64 {
        let mut sums = [0.0; PADDING];
        let groups = point.chunks_exact(PADDING).zip(other.chunks_exact(PADDING));
        for ((point, other), weights) in groups.zip(self.weights.chunks_exact(PADDING)) {
            for lane in 0..PADDING {
                let difference = point[lane] - other[lane];
                sums[lane] += weights[lane] * (difference * difference);
            }
        }
        ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]))
    }

    /// Returns the factors of a candidate with these weights.
    pub fn new(weights: &[f64], arms: &[Blocks; 2]) -> Self {
        let largest = arms[0].largest.iter().zip(&arms[1].largest);
        let squared: f64 = largest
            .zip(weights)
            .map(|((left, right), weight)| left.max(*right).powi(2) * weight)
            .sum();
        let radius = if squared > 0.0 { squared.sqrt() } else { 1.0 };
        let mut padded = weights.to_vec();
        padded.resize(weights.len().next_multiple_of(PADDING), 0.0);
        Self {
            weights: padded,
            factors: weights
                .iter()
                .map(|weight| weight.sqrt() / radius)
                .collect(),
            radius,
        }
    }

    /// Returns the largest result of single precision for this squared distance, in the unit ball.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // The margin is larger than the rounding.
    pub fn reach(&self, squared: f64) -> f32 {
        let distance = squared.sqrt() / self.radius * (1.0 + DISTANCE_ROUNDING) + DISTANCE_ROUNDING;
        (distance * distance * (1.0 + TERM_ROUNDING * (self.factors.len() as f64 + 8.0))) as f32
    }
}

impl Blocks {
    /// Builds the blocks from points of `columns` standardised covariates each.
    pub fn new(points: &[f64], columns: usize) -> Self {
        let count = points.len() / columns;
        let stride = columns.next_multiple_of(PADDING);
        let mut standardised = vec![0.0; count * stride];
        let mut transposed = vec![f64::NAN; count.div_ceil(LANES) * LANES * columns];
        let mut largest = vec![0.0_f64; columns];
        let batches = count.div_ceil(LANES).div_ceil(LANES);
        let mut low = vec![f64::INFINITY; batches * columns * LANES];
        let mut high = vec![f64::NEG_INFINITY; batches * columns * LANES];
        for (point, values) in points.chunks_exact(columns).enumerate() {
            let (block, lane) = (point / LANES, point % LANES);
            standardised[point * stride..point * stride + columns].copy_from_slice(values);
            for (column, &value) in values.iter().enumerate() {
                transposed[(block * columns + column) * LANES + lane] = value;
                largest[column] = largest[column].max(value.abs());
                let ends = (block / LANES * columns + column) * LANES + block % LANES;
                low[ends] = low[ends].min(value);
                high[ends] = high[ends].max(value);
            }
        }
        Self {
            columns,
            standardised,
            transposed,
            largest,
            low,
            high,
        }
    }

    /// Stretches all points by the factors of a candidate.
    #[allow(clippy::cast_possible_truncation)] // Single precision is intended.
    pub fn stretch(&self, scale: &ColumnScale, output: &mut StretchedPoints) {
        output.axes = self.columns;
        stretch_lanes(&self.transposed, &scale.factors, &mut output.blocks);
        stretch_lanes(&self.low, &scale.factors, &mut output.low);
        stretch_lanes(&self.high, &scale.factors, &mut output.high);
    }

    /// Writes some stretched points as queries, one after another. If there are fewer points than
    /// `QUERIES`, the missing queries are NaN, so that no point is near them.
    #[allow(clippy::cast_possible_truncation)] // Single precision is intended.
    pub fn write_queries(&self, points: Range<usize>, scale: &ColumnScale, output: &mut Vec<f32>) {
        output.clear();
        for point in points {
            let values = self.point(point).iter().zip(&scale.factors);
            output.extend(values.map(|(value, factor)| (value * factor) as f32));
        }
        output.resize(QUERIES * scale.factors.len(), f32::NAN);
    }

    /// Returns a standardised point, padded with zeros.
    #[inline]
    pub fn point(&self, point: usize) -> &[f64] {
        let stride = self.columns.next_multiple_of(PADDING);
        &self.standardised[point * stride..(point + 1) * stride]
    }
}

/// Stretches values that are stored as `LANES` of one column, then `LANES` of the next column.
#[allow(clippy::cast_possible_truncation)] // Single precision is intended.
fn stretch_lanes(from: &[f64], factors: &[f64], output: &mut Vec<f32>) {
    output.resize(from.len(), 0.0);
    let lanes = from
        .chunks_exact(LANES)
        .zip(output.chunks_exact_mut(LANES))
        .zip(factors.iter().cycle());
    for ((from, output), factor) in lanes {
        for lane in 0..LANES {
            output[lane] = (from[lane] * factor) as f32;
        }
    }
}

impl StretchedPoints {
    #[inline]
    pub fn block_count(&self) -> usize {
        self.blocks.len() / (self.axes * LANES)
    }

    /// Returns the coordinates of a block, axis after axis.
    #[inline]
    pub fn block(&self, block: usize) -> &[f32] {
        let size = self.axes * LANES;
        &self.blocks[block * size..(block + 1) * size]
    }
}
