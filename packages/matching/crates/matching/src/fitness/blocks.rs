//! Points in blocks for the processor, stretched again by each candidate's weights.

/// Number of queries that are compared with a block together.
pub const TOGETHER: usize = 8;
/// Points of one block, whose distances are computed together.
pub const LANES: usize = 16;
/// Coordinates of a point are padded with zeros to a multiple of this.
const PAD: usize = 8;
/// By how much, at most, the distance of two points within the unit ball is larger in single
/// precision than it is: their coordinates are rounded to 24 bits, and so is their difference.
const ROUNDING: f64 = 3e-7;
/// The same, as a share of the squared distance, of each coordinate's square and sum.
const ROUNDING_OF_SUM: f64 = 1.3e-7;

/// Standardised points of one arm.
pub struct Blocks {
    columns: usize,
    /// The points, one after another, each padded.
    standard: Vec<f64>,
    /// The same, column after column within a block; not a number beyond the last point.
    transposed: Vec<f64>,
    /// The largest absolute value of each column.
    largest: Vec<f64>,
    /// The low ends of `LANES` blocks' boxes, column after column, and the high ends.
    low: Vec<f64>,
    high: Vec<f64>,
}

/// The points of one arm under one candidate.
#[derive(Default)]
pub struct Stretched {
    /// Coordinates of each point.
    pub axes: usize,
    /// `axes` times `LANES` numbers for each block, scaled into the unit ball.
    pub blocks: Vec<f32>,
    /// The low ends of the boxes of `LANES` blocks, `axes` times, and the high ends.
    pub low: Vec<f32>,
    /// The high ends.
    pub high: Vec<f32>,
}

/// A candidate's scale of each column.
pub struct Axes {
    /// The weights, padded with zeros.
    weights: Vec<f64>,
    /// Factors that scale each column into the unit ball.
    scales: Vec<f64>,
    /// No point is further from the mean of all.
    radius: f64,
}

impl Axes {
    /// The squared distance of two standardised points, to be relied on.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It is the inner loop, and gets its caller's instructions.
    pub fn squared(&self, point: &[f64], other: &[f64]) -> f64 {
        let mut sums = [0.0; PAD];
        let parts = point.chunks_exact(PAD).zip(other.chunks_exact(PAD));
        for ((point, other), weights) in parts.zip(self.weights.chunks_exact(PAD)) {
            for lane in 0..PAD {
                let apart = point[lane] - other[lane];
                sums[lane] += weights[lane] * (apart * apart);
            }
        }
        ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]))
    }

    /// The roots of the weights.
    pub fn of(weights: &[f64], arms: &[Blocks; 2]) -> Self {
        let largest = arms[0].largest.iter().zip(&arms[1].largest);
        let squared: f64 = largest
            .zip(weights)
            .map(|((left, right), weight)| left.max(*right).powi(2) * weight)
            .sum();
        let radius = if squared > 0.0 { squared.sqrt() } else { 1.0 };
        let mut padded = weights.to_vec();
        padded.resize(weights.len().next_multiple_of(PAD), 0.0);
        Self {
            weights: padded,
            scales: weights
                .iter()
                .map(|weight| weight.sqrt() / radius)
                .collect(),
            radius,
        }
    }

    /// Upper limit of a squared distance as single precision computes it.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // Raised above by more than the rounding.
    pub fn reach(&self, squared: f64) -> f32 {
        let raised = squared.sqrt() / self.radius * (1.0 + ROUNDING) + ROUNDING;
        (raised * raised * (1.0 + ROUNDING_OF_SUM * (self.scales.len() as f64 + 8.0))) as f32
    }
}

impl Blocks {
    /// The points, each of `columns` standardised covariates, one after another.
    pub fn new(points: &[f64], columns: usize) -> Self {
        let count = points.len() / columns;
        let stride = columns.next_multiple_of(PAD);
        let mut standard = vec![0.0; count * stride];
        let mut transposed = vec![f64::NAN; count.div_ceil(LANES) * LANES * columns];
        let mut largest = vec![0.0_f64; columns];
        let batches = count.div_ceil(LANES).div_ceil(LANES);
        let mut low = vec![f64::INFINITY; batches * columns * LANES];
        let mut high = vec![f64::NEG_INFINITY; batches * columns * LANES];
        for (point, values) in points.chunks_exact(columns).enumerate() {
            let (block, lane) = (point / LANES, point % LANES);
            standard[point * stride..point * stride + columns].copy_from_slice(values);
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
            standard,
            transposed,
            largest,
            low,
            high,
        }
    }

    /// Stretches all points by the roots of the weights.
    #[allow(clippy::cast_possible_truncation)] // Single precision is meant.
    pub fn stretch(&self, axes: &Axes, into: &mut Stretched) {
        into.axes = self.columns;
        stretch_lanes(&self.transposed, &axes.scales, &mut into.blocks);
        stretch_lanes(&self.low, &axes.scales, &mut into.low);
        stretch_lanes(&self.high, &axes.scales, &mut into.high);
    }

    /// Some points as queries, one after another, `axes` numbers each; missing points are NaN, and
    /// near no point.
    #[allow(clippy::cast_possible_truncation)] // Single precision is meant.
    pub fn queries(&self, points: std::ops::Range<usize>, axes: &Axes, into: &mut Vec<f32>) {
        into.clear();
        for point in points {
            let values = self.of(point).iter().zip(&axes.scales);
            into.extend(values.map(|(value, scale)| (value * scale) as f32));
        }
        into.resize(TOGETHER * axes.scales.len(), f32::NAN);
    }

    /// A standardised point, padded with zeros.
    #[inline]
    pub fn of(&self, point: usize) -> &[f64] {
        let stride = self.columns.next_multiple_of(PAD);
        &self.standard[point * stride..(point + 1) * stride]
    }
}

/// Stretches numbers of which `LANES` belong to one column, then as many to the next.
#[allow(clippy::cast_possible_truncation)] // Single precision is meant.
fn stretch_lanes(from: &[f64], scales: &[f64], into: &mut Vec<f32>) {
    into.resize(from.len(), 0.0);
    let lanes = from
        .chunks_exact(LANES)
        .zip(into.chunks_exact_mut(LANES))
        .zip(scales.iter().cycle());
    for ((from, into), scale) in lanes {
        for lane in 0..LANES {
            into[lane] = (from[lane] * scale) as f32;
        }
    }
}

impl Stretched {
    /// Returns the number of blocks.
    #[inline]
    pub fn block_count(&self) -> usize {
        self.blocks.len() / (self.axes * LANES)
    }

    /// The coordinates of a block, axis after axis.
    #[inline]
    pub fn block(&self, block: usize) -> &[f32] {
        let size = self.axes * LANES;
        &self.blocks[block * size..(block + 1) * size]
    }
}
