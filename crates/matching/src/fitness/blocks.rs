//! Points in blocks for the processor, stretched anew by each candidate's weights.

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
    /// The same, padded.
    pub stride: usize,
    /// `axes` times `LANES` numbers for each block, scaled into the unit ball.
    pub blocks: Vec<f32>,
    /// The same numbers, point after point, each padded.
    pub queries: Vec<f32>,
    /// The low ends of the boxes of `LANES` blocks, `axes` times, and the high ends.
    pub low: Vec<f32>,
    /// The high ends.
    pub high: Vec<f32>,
    exact: Vec<f64>,
}

/// What a candidate measures by.
pub struct Axes {
    /// The root of each weight, padded with zeros.
    roots: Vec<f64>,
    /// No point is further from the mean of all.
    radius: f64,
    columns: f64,
}

impl Axes {
    /// The roots of the weights.
    pub fn of(weights: &[f64], arms: &[Blocks; 2]) -> Self {
        let mut roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        let largest = arms[0].largest.iter().zip(&arms[1].largest);
        let squared: f64 = largest
            .zip(&roots)
            .map(|((left, right), root)| (left.max(*right) * root).powi(2))
            .sum();
        roots.resize(weights.len().next_multiple_of(PAD), 0.0);
        Self {
            roots,
            radius: if squared > 0.0 { squared.sqrt() } else { 1.0 },
            columns: weights.len() as f64,
        }
    }

    /// A squared distance as it may be found in single precision, or a little more.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // What is rounded down was raised by more before.
    pub fn reach(&self, squared: f64) -> f32 {
        let raised = squared.sqrt() / self.radius * (1.0 + ROUNDING) + ROUNDING;
        (raised * raised * (1.0 + ROUNDING_OF_SUM * (self.columns + 8.0))) as f32
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
        let (columns, stride) = (self.columns, axes.roots.len());
        into.axes = columns;
        into.stride = stride;
        into.queries.resize(self.standard.len(), 0.0);
        into.exact.resize(self.standard.len(), 0.0);
        let scales: Vec<f64> = axes.roots.iter().map(|root| root / axes.radius).collect();
        stretch_lanes(&self.transposed, &scales[..columns], &mut into.blocks);
        stretch_lanes(&self.low, &scales[..columns], &mut into.low);
        stretch_lanes(&self.high, &scales[..columns], &mut into.high);
        let points = self
            .standard
            .chunks_exact(stride)
            .zip(into.exact.chunks_exact_mut(stride))
            .zip(into.queries.chunks_exact_mut(stride));
        for ((point, exact), query) in points {
            for axis in 0..stride {
                exact[axis] = point[axis] * axes.roots[axis];
                query[axis] = (point[axis] * scales[axis]) as f32;
            }
        }
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
    /// How many blocks there are.
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

    /// The squared distance of a point to one of the other arm, to be relied on.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It is the inner loop, and gets its caller's instructions.
    pub fn squared(&self, point: usize, arm: &Self, other: usize) -> f64 {
        let own = &self.exact[point * self.stride..(point + 1) * self.stride];
        let theirs = &arm.exact[other * self.stride..(other + 1) * self.stride];
        let mut sums = [0.0; PAD];
        for (own, theirs) in own.chunks_exact(PAD).zip(theirs.chunks_exact(PAD)) {
            for lane in 0..PAD {
                let apart = own[lane] - theirs[lane];
                sums[lane] += apart * apart;
            }
        }
        ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]))
    }
}
