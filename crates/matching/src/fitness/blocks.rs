//! Points in blocks for the processor, stretched anew by each candidate's weights.

/// Points of one block, whose distances are computed together.
pub const LANES: usize = 16;

/// Standardised points of one arm, and what they are under a candidate.
pub struct Blocks {
    columns: usize,
    standard: Vec<f64>,
}

/// The points under one candidate, axis after axis within a block.
#[derive(Default)]
pub struct Stretched {
    /// Coordinates of each point.
    pub axes: usize,
    /// `axes` times `LANES` numbers for each block; not a number beyond the last point.
    pub blocks: Vec<f64>,
}

/// The columns that a candidate measures by, and the root of their weights.
pub struct Axes {
    columns: Vec<(usize, f64)>,
}

impl Axes {
    /// The columns whose weight is positive; the first one if there is none.
    pub fn of(weights: &[f64]) -> Self {
        let mut columns: Vec<(usize, f64)> = weights
            .iter()
            .enumerate()
            .filter(|&(_, &weight)| weight > 0.0)
            .map(|(column, &weight)| (column, weight.sqrt()))
            .collect();
        if columns.is_empty() {
            columns.push((0, 0.0));
        }
        Self { columns }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.columns.len()
    }

    /// A standardised point, stretched.
    pub fn stretch<'a>(&'a self, standard: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.columns
            .iter()
            .map(|&(column, root)| standard[column] * root)
    }
}

impl Blocks {
    /// The points, each of `columns` standardised covariates, one after another.
    pub fn new(standard: &[f64], columns: usize) -> Self {
        let points = standard.len() / columns;
        let mut blocks = vec![f64::NAN; points.div_ceil(LANES) * LANES * columns];
        for (point, values) in standard.chunks_exact(columns).enumerate() {
            let (block, lane) = (point / LANES, point % LANES);
            for (column, &value) in values.iter().enumerate() {
                blocks[(block * columns + column) * LANES + lane] = value;
            }
        }
        Self {
            columns,
            standard: blocks,
        }
    }

    /// Stretches all points by the roots of the weights.
    pub fn stretch(&self, axes: &Axes, into: &mut Stretched) {
        into.axes = axes.count();
        into.blocks.clear();
        for block in self.standard.chunks_exact(self.columns * LANES) {
            for &(column, root) in &axes.columns {
                let values = &block[column * LANES..(column + 1) * LANES];
                into.blocks.extend(values.iter().map(|value| value * root));
            }
        }
    }
}
