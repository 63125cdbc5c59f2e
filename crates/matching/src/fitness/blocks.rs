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
    /// The points, one after another.
    standard: Vec<f64>,
    /// The same, column after column within a block; not a number beyond the last point.
    in_blocks: Vec<f64>,
    /// The largest absolute value of each column.
    largest: Vec<f64>,
}

/// The points of one arm under one candidate.
#[derive(Default)]
pub struct Stretched {
    /// Coordinates of each point.
    pub axes: usize,
    /// `axes` times `LANES` numbers for each block, scaled into the unit ball.
    pub blocks: Vec<f32>,
    /// The same numbers, point after point.
    pub queries: Vec<f32>,
    stride: usize,
    exact: Vec<f64>,
}

/// The columns that a candidate measures by.
pub struct Axes {
    /// Each column, and the root of its weight.
    columns: Vec<(usize, f64)>,
    /// No point is further from the mean of all.
    radius: f64,
}

impl Axes {
    /// The columns whose weight is positive; the first one if there is none.
    pub fn of(weights: &[f64], arms: &[Blocks; 2]) -> Self {
        let mut columns: Vec<(usize, f64)> = weights
            .iter()
            .enumerate()
            .filter(|&(_, &weight)| weight > 0.0)
            .map(|(column, &weight)| (column, weight.sqrt()))
            .collect();
        if columns.is_empty() {
            columns.push((0, 0.0));
        }
        let squared: f64 = columns
            .iter()
            .map(|&(column, root)| {
                let largest = arms[0].largest[column].max(arms[1].largest[column]);
                (largest * root).powi(2)
            })
            .sum();
        let radius = if squared > 0.0 { squared.sqrt() } else { 1.0 };
        Self { columns, radius }
    }

    /// A squared distance as it may be found in single precision, or a little more.
    #[allow(clippy::cast_possible_truncation)] // What is rounded down was raised by more before.
    pub fn reach(&self, squared: f64) -> f32 {
        let raised = squared.sqrt() / self.radius * (1.0 + ROUNDING) + ROUNDING;
        let terms = self.columns.len() as f64 + 8.0;
        (raised * raised * (1.0 + ROUNDING_OF_SUM * terms)) as f32
    }
}

impl Blocks {
    /// The points, each of `columns` standardised covariates, one after another.
    pub fn new(standard: &[f64], columns: usize) -> Self {
        let points = standard.len() / columns;
        let mut blocks = vec![f64::NAN; points.div_ceil(LANES) * LANES * columns];
        let mut largest = vec![0.0_f64; columns];
        for (point, values) in standard.chunks_exact(columns).enumerate() {
            let (block, lane) = (point / LANES, point % LANES);
            for (column, &value) in values.iter().enumerate() {
                blocks[(block * columns + column) * LANES + lane] = value;
                largest[column] = largest[column].max(value.abs());
            }
        }
        Self {
            columns,
            standard: standard.to_vec(),
            in_blocks: blocks,
            largest,
        }
    }

    /// Stretches all points by the roots of the weights.
    #[allow(clippy::cast_possible_truncation)] // Single precision is meant.
    pub fn stretch(&self, axes: &Axes, into: &mut Stretched) {
        let count = axes.columns.len();
        into.axes = count;
        into.stride = count.next_multiple_of(PAD);
        into.blocks.clear();
        into.queries.clear();
        into.exact.clear();
        for block in self.in_blocks.chunks_exact(self.columns * LANES) {
            for &(column, root) in &axes.columns {
                let scale = root / axes.radius;
                let values = &block[column * LANES..(column + 1) * LANES];
                into.blocks
                    .extend(values.iter().map(|value| (value * scale) as f32));
            }
        }
        for point in self.standard.chunks_exact(self.columns) {
            for &(column, root) in &axes.columns {
                into.exact.push(point[column] * root);
                into.queries
                    .push((point[column] * (root / axes.radius)) as f32);
            }
            into.exact
                .resize(into.exact.len() + into.stride - count, 0.0);
        }
    }
}

impl Stretched {
    /// The squared distance of a point to one of the other arm, to be relied on.
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
