//! A copy of a pool in single precision, which finds the blocks that may have a near point.
//!
//! A search in double precision then examines these blocks alone, so that it finds the same
//! neighbours. The limits of the filter are raised by the largest rounding error of single
//! precision. Points are divided by the largest distance from the origin, so that all are in the
//! unit ball.

use crate::instructions::LANES;
use crate::neighbours::Query;
use crate::pool::Pool;
use crate::single::Single;
use crate::tree::Tree;

/// Largest rounding error in single precision of the distance of two points in the unit ball. The
/// coordinates and their difference are each rounded to 24 bits.
const DISTANCE_ROUNDING: f64 = 3e-7;
/// Largest relative rounding error that each coordinate adds to a squared distance.
const TERM_ROUNDING: f64 = 1.3e-7;
/// Largest rounding error that each coordinate adds to the half of a squared distance, if it is
/// computed from norms and a product: the partial sums of near points in the unit ball are at most 3.
const PRODUCT_ROUNDING: f64 = 2.4e-7;

/// The points and the boxes of a pool in single precision.
pub struct Filter {
    dimensions: usize,
    /// Largest distance of a point or of a query from the origin.
    radius: f64,
    /// For each block sixteen numbers for each axis, then the halves of the squared norms.
    blocks: Vec<f32>,
    /// Boxes of the nodes of the tree, in the tree's order.
    boxes: Vec<f32>,
}

impl Filter {
    /// Copies a pool, for queries that are points of `queries`, which may be the same pool.
    pub fn new(pool: &Pool, queries: &Pool) -> Self {
        let dimensions = pool.dimensions;
        let norms = squared_norms(pool);
        let all_norms = norms.iter().copied().chain(squared_norms(queries));
        let largest = all_norms
            .filter(|norm| norm.is_finite())
            .fold(0.0, f64::max);
        let radius = if largest > 0.0 { largest.sqrt() } else { 1.0 };
        let mut blocks = Vec::with_capacity(norms.len() * (dimensions + 1));
        for (block, norms) in norms.chunks_exact(LANES).enumerate() {
            let lanes = norms.iter().cycle();
            // A missing point has coordinates of 0 and an infinite norm, so it is never near.
            let values = pool.block(block).iter().zip(lanes).map(|(value, norm)| {
                let value = if norm.is_finite() { *value } else { 0.0 };
                single(value / radius)
            });
            blocks.extend(values);
            blocks.extend(
                norms
                    .iter()
                    .map(|norm| single(norm / (2.0 * largest.max(f64::MIN_POSITIVE)))),
            );
        }
        let boxes = scaled_boxes(&pool.tree, dimensions, radius);
        Self {
            dimensions,
            radius,
            blocks,
            boxes,
        }
    }

    /// Writes the coordinates of a query in the unit ball.
    pub fn write_query(&self, coordinates: &[f64], output: &mut Vec<f32>) {
        output.clear();
        output.extend(coordinates.iter().map(|value| single(value / self.radius)));
    }

    /// Returns half of the squared norm of a query in the unit ball.
    pub fn half_norm(&self, coordinates: &[f64]) -> f64 {
        let squares = coordinates
            .iter()
            .map(|value| (value / self.radius).powi(2));
        0.5 * squares.sum::<f64>()
    }

    /// Returns the largest squared distance in the unit ball, computed from differences, for a
    /// point at this squared distance.
    pub fn reach(&self, squared: f64) -> f32 {
        let distance = squared.sqrt() / self.radius * (1.0 + DISTANCE_ROUNDING) + DISTANCE_ROUNDING;
        let factor = 1.0 + TERM_ROUNDING * (self.dimensions as f64 + 8.0);
        // A box without points is infinitely far, so the limit must be finite.
        single(distance * distance * factor).min(f32::MAX)
    }

    /// Returns the largest half of the squared norm of a point, minus its product with a query, for
    /// a point at this squared distance of the query.
    pub fn product_limit(&self, half_norm: f64, squared: f64) -> f32 {
        let half_square = 0.5 * squared / (self.radius * self.radius);
        let rounding = PRODUCT_ROUNDING * (self.dimensions as f64 + 4.0);
        single(half_square * (1.0 + DISTANCE_ROUNDING) - half_norm + rounding).min(f32::MAX)
    }

    /// Returns the coordinates of a block, axis after axis.
    pub fn block(&self, block: usize) -> &[f32] {
        let start = block * LANES * (self.dimensions + 1);
        &self.blocks[start..start + LANES * self.dimensions]
    }

    /// Returns the halves of the squared norms of the points of a block.
    pub fn half_norms(&self, block: usize) -> &[f32] {
        let end = (block + 1) * LANES * (self.dimensions + 1);
        &self.blocks[end - LANES..end]
    }

    /// Returns the boxes of a node's children: for each axis sixteen low ends, sixteen high ends.
    pub fn boxes(&self, node: usize) -> &[f32] {
        let size = 2 * LANES * self.dimensions;
        &self.boxes[node * size..(node + 1) * size]
    }

    /// Returns the number of bytes of a block.
    pub fn block_bytes(&self) -> usize {
        LANES * (self.dimensions + 1) * size_of::<f32>()
    }
}

/// Some queries that are compared with a block of a filter together.
pub struct FilterTile<const QUERIES: usize> {
    /// Coordinates of the queries in the unit ball, axis after axis.
    points: Vec<[f32; QUERIES]>,
    /// Half of the squared norm of each query.
    pub half_norm: [f64; QUERIES],
    /// Limit of each query, by `Filter::product_limit` or `Filter::reach`. No point is within the
    /// limit of a missing query.
    pub limit: [f32; QUERIES],
    /// The block that was searched first for each query.
    pub first_block: [usize; QUERIES],
}

impl<const QUERIES: usize> FilterTile<QUERIES> {
    pub fn new(filter: &Filter, queries: &[Query<'_>], dimensions: usize) -> Self {
        let mut tile = Self {
            points: vec![[0.0; QUERIES]; dimensions],
            half_norm: [0.0; QUERIES],
            limit: [-f32::MAX; QUERIES],
            first_block: [usize::MAX; QUERIES],
        };
        let mut centre = Vec::with_capacity(dimensions);
        for (slot, query) in queries.iter().enumerate() {
            filter.write_query(query.coordinates, &mut centre);
            for (axis, &value) in tile.points.iter_mut().zip(&centre) {
                axis[slot] = value;
            }
            tile.half_norm[slot] = filter.half_norm(query.coordinates);
        }
        tile
    }

    /// Returns a bit for each query, set if a point of the block may be within its limit, which is
    /// of `Filter::product_limit`.
    ///
    /// # Safety
    /// The processor must have the instructions of `S`.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    pub unsafe fn near_by_products<S: Single>(&self, filter: &Filter, block: usize) -> u32 {
        // SAFETY: by the caller.
        unsafe {
            let half_norms = S::load(filter.half_norms(block));
            let mut sums = self.limit.map(|limit| half_norms.minus(S::splat(limit)));
            let axes = filter.block(block).chunks_exact(LANES);
            for (axis, centres) in axes.zip(&self.points) {
                let lanes = S::load(axis);
                for (sum, &centre) in sums.iter_mut().zip(centres) {
                    *sum = sum.minus_product(lanes, S::splat(centre));
                }
            }
            slots_without_excess(sums)
        }
    }

    /// Returns the same for limits of `Filter::reach`.
    ///
    /// # Safety
    /// The processor must have the instructions of `S`.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    pub unsafe fn near_by_differences<S: Single>(&self, filter: &Filter, block: usize) -> u32 {
        // SAFETY: by the caller.
        unsafe {
            let mut sums = [S::splat(0.0); QUERIES];
            let axes = filter.block(block).chunks_exact(LANES);
            for (axis, centres) in axes.zip(&self.points) {
                let lanes = S::load(axis);
                for (sum, &centre) in sums.iter_mut().zip(centres) {
                    *sum = lanes.minus(S::splat(centre)).squared_plus(*sum);
                }
            }
            for (sum, &limit) in sums.iter_mut().zip(&self.limit) {
                *sum = sum.minus(S::splat(limit));
            }
            slots_without_excess(sums)
        }
    }

    /// Returns the largest limit of the queries.
    pub fn largest_limit(&self) -> f32 {
        self.limit.iter().copied().fold(-1.0, f32::max)
    }

    /// Returns the low and the high ends of the box of the first `count` queries, axis by axis.
    pub fn ends(&self, count: usize) -> Vec<(f32, f32)> {
        let ends = |values: &[f32; QUERIES]| {
            let values = values[..count].iter().copied();
            let low = values.clone().fold(f32::INFINITY, f32::min);
            (low, values.fold(f32::NEG_INFINITY, f32::max))
        };
        self.points.iter().map(ends).collect()
    }
}

/// Returns a bit for each slot, set if one of the sixteen numbers of the slot is at most 0.
///
/// # Safety
/// The processor must have the instructions of `S`.
#[inline(always)]
#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
unsafe fn slots_without_excess<S: Single, const SLOTS: usize>(excess: [S; SLOTS]) -> u32 {
    // SAFETY: by the caller.
    unsafe {
        let zero = S::splat(0.0);
        let mut smallest = excess[0];
        for other in &excess[1..] {
            smallest = smallest.minimum(*other);
        }
        if smallest.at_most(zero) == 0 {
            return 0;
        }
        let mut near = 0;
        for (slot, numbers) in excess.into_iter().enumerate() {
            near |= u32::from(numbers.at_most(zero) != 0) << slot;
        }
        near
    }
}

/// Returns a bit for each point of a block, set if the point may be within reach of the query.
///
/// # Safety
/// The processor must have the instructions of `S`.
#[inline(always)]
#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
pub unsafe fn near_points<S: Single>(
    filter: &Filter,
    block: usize,
    centre: &[f32],
    reach: f32,
) -> u32 {
    // SAFETY: by the caller.
    unsafe {
        let mut squared = S::splat(0.0);
        for (axis, &centre) in filter.block(block).chunks_exact(LANES).zip(centre) {
            squared = S::load(axis).minus(S::splat(centre)).squared_plus(squared);
        }
        squared.at_most(S::splat(reach))
    }
}

/// Writes lower bounds of the distances of a node's children to a box, and returns a bit for each
/// child, set if it is within reach. `ends` has the low and the high end of the box on each axis,
/// which are equal for a single query.
///
/// # Safety
/// The processor must have the instructions of `S`.
#[inline(always)]
#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
pub unsafe fn near_boxes<S: Single>(
    filter: &Filter,
    node: usize,
    ends: impl Iterator<Item = (f32, f32)>,
    reach: f32,
    bounds: &mut [f32; LANES],
) -> u32 {
    // SAFETY: by the caller.
    unsafe {
        let zero = S::splat(0.0);
        let mut squared = zero;
        for (boxes, (low, high)) in filter.boxes(node).chunks_exact(2 * LANES).zip(ends) {
            let above = S::load(boxes).minus(S::splat(high));
            let outside = above.maximum(S::splat(low).minus(S::load(&boxes[LANES..])));
            squared = outside.maximum(zero).squared_plus(squared);
        }
        squared.store(bounds);
        squared.at_most(S::splat(reach))
    }
}

/// Returns the squared distance of each point from the origin; infinite for a missing point.
fn squared_norms(pool: &Pool) -> Vec<f64> {
    let mut norms = vec![0.0; pool.block_count() * LANES];
    for (block, norms) in norms.chunks_exact_mut(LANES).enumerate() {
        for axis in pool.block(block).chunks_exact(LANES) {
            for (norm, value) in norms.iter_mut().zip(axis) {
                *norm += value * value;
            }
        }
    }
    norms
}

/// Returns the boxes of all nodes, without the columns of calipers, divided by the radius.
fn scaled_boxes(tree: &Tree, dimensions: usize, radius: f64) -> Vec<f32> {
    let size = 2 * LANES * dimensions;
    let mut boxes = Vec::with_capacity(tree.node_count() * size);
    for node in 0..tree.node_count() {
        boxes.extend(
            tree.boxes(node)[..size]
                .iter()
                .map(|end| single(end / radius)),
        );
    }
    boxes
}

/// Rounds a number to single precision. Rounding keeps the order of numbers.
#[allow(clippy::cast_possible_truncation)] // The limits are raised by the rounding errors.
fn single(value: f64) -> f32 {
    value as f32
}
