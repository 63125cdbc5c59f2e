//! Finds the pairs of points that may be within reach of each other, with vector instructions.
//! The reach of a point is the largest squared distance that a neighbour can have.
//!
//! Distances are computed in single precision. The reaches are raised by the largest rounding
//! error, so that no pair is missed. The visitor computes the distance of a pair again, in double
//! precision. A block is skipped if its box is beyond reach of the queries' box. The boxes contain
//! the rounded points, so the same reaches are right for boxes.

use crate::fitness::blocks::{LANES, QUERIES, StretchedPoints};
use crate::instructions::Instructions;

/// Receives the pairs that may be near, and gives the reach of each point.
pub trait PairVisitor {
    /// Returns the largest squared distance of each query; negative for missing queries.
    fn reach(&self) -> &[f32; QUERIES];

    /// Returns the largest squared distance of each point of a block; only for a search both ways.
    fn block_reach(&self, _block: usize) -> &[f32; LANES] {
        &[-1.0; LANES]
    }

    /// Returns the largest reach in each of `LANES` blocks, a batch; only for a search both ways.
    fn batch_reach(&self, _batch: usize) -> &[f32; LANES] {
        &[-1.0; LANES]
    }

    /// Handles a pair that may be within reach. Pairs come block by block and query by query.
    fn visit(&mut self, query: usize, point: usize);
}

/// Passes every pair within the reach of the query to `visitor`. With `BOTH_WAYS`, also passes
/// every pair within the reach of the point. `queries` are `QUERIES` stretched points, one after
/// another.
pub fn scan<V: PairVisitor, const BOTH_WAYS: bool>(
    instructions: Instructions,
    points: &StretchedPoints,
    queries: &[f32],
    visitor: &mut V,
) {
    assert!(queries.len() == points.axes * QUERIES);
    assert!(instructions.is_available());
    match instructions {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the check above found AVX-512.
        Instructions::Avx512 => unsafe { with_avx512::<V, BOTH_WAYS>(points, queries, visitor) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the check above found AVX2 and FMA.
        Instructions::Avx2 => unsafe { with_avx2::<V, BOTH_WAYS>(points, queries, visitor) },
        _ => scan_by_parts::<V, BOTH_WAYS, false>(points, queries, visitor),
    }
}

/// # Safety
/// The processor must have AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn with_avx512<V: PairVisitor, const BOTH_WAYS: bool>(
    points: &StretchedPoints,
    queries: &[f32],
    visitor: &mut V,
) {
    use std::arch::x86_64::{
        _CMP_LE_OQ, _mm512_cmp_ps_mask, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps,
        _mm512_setzero_ps, _mm512_sub_ps,
    };
    let axes = points.axes;
    let mut near = NearBlocks::<BOTH_WAYS>::new(points, queries);
    while let Some(block) = near.next(points, visitor) {
        let coordinates = points.block(block);
        let mut squared = [_mm512_setzero_ps(); QUERIES];
        for axis in 0..axes {
            // SAFETY: a block has LANES numbers for each axis.
            let values = unsafe { _mm512_loadu_ps(coordinates.as_ptr().add(axis * LANES)) };
            for (query, sum) in squared.iter_mut().enumerate() {
                // SAFETY: there are as many numbers for each query, as `scan` asserts.
                let centre = unsafe { *queries.get_unchecked(query * axes + axis) };
                let difference = _mm512_sub_ps(values, _mm512_set1_ps(centre));
                *sum = _mm512_fmadd_ps(difference, difference, *sum);
            }
        }
        let mut within = [0_u16; QUERIES];
        let reach = visitor.reach();
        for (query, mask) in within.iter_mut().enumerate() {
            *mask = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(squared[query], _mm512_set1_ps(reach[query]));
        }
        if BOTH_WAYS {
            // SAFETY: there are LANES numbers.
            let reach = unsafe { _mm512_loadu_ps(visitor.block_reach(block).as_ptr()) };
            for (query, mask) in within.iter_mut().enumerate() {
                *mask |= _mm512_cmp_ps_mask::<_CMP_LE_OQ>(squared[query], reach);
            }
        }
        if within != [0; QUERIES] {
            visit_pairs(block, within, visitor);
        }
    }
}

/// # Safety
/// The processor must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn with_avx2<V: PairVisitor, const BOTH_WAYS: bool>(
    points: &StretchedPoints,
    queries: &[f32],
    visitor: &mut V,
) {
    scan_by_parts::<V, BOTH_WAYS, true>(points, queries, visitor);
}

/// Scans with arrays that the compiler turns into vectors, a part of the queries at a time.
#[inline(always)]
#[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
fn scan_by_parts<V: PairVisitor, const BOTH_WAYS: bool, const FUSED: bool>(
    points: &StretchedPoints,
    queries: &[f32],
    visitor: &mut V,
) {
    // Number of queries whose sums fit into the registers.
    const GROUP: usize = 4;
    let axes = points.axes;
    let mut near = NearBlocks::<BOTH_WAYS>::new(points, queries);
    while let Some(block) = near.next(points, visitor) {
        let coordinates = points.block(block);
        let mut within = [0_u16; QUERIES];
        for first_query in (0..QUERIES).step_by(GROUP) {
            let mut squared = [[0.0_f32; LANES]; GROUP];
            for (axis, values) in coordinates.chunks_exact(LANES).enumerate() {
                for (index, sums) in squared.iter_mut().enumerate() {
                    let centre = queries[(first_query + index) * axes + axis];
                    for (sum, value) in sums.iter_mut().zip(values) {
                        let difference = value - centre;
                        *sum = if FUSED {
                            difference.mul_add(difference, *sum)
                        } else {
                            *sum + difference * difference
                        };
                    }
                }
            }
            for (index, sums) in squared.iter().enumerate() {
                let query = first_query + index;
                let reach = visitor.reach()[query];
                let point_reach = if BOTH_WAYS {
                    *visitor.block_reach(block)
                } else {
                    [-1.0; LANES]
                };
                for lane in 0..LANES {
                    let sum = sums[lane];
                    let near = sum <= reach || (BOTH_WAYS && sum <= point_reach[lane]);
                    within[query] |= u16::from(near) << lane;
                }
            }
        }
        if within != [0; QUERIES] {
            visit_pairs(block, within, visitor);
        }
    }
}

/// Calls the visitor for the pairs of a block whose bits are set.
#[inline(always)]
#[allow(clippy::inline_always)] // It is the inner loop.
fn visit_pairs<V: PairVisitor>(block: usize, within: [u16; QUERIES], visitor: &mut V) {
    for (query, mut mask) in within.into_iter().enumerate() {
        while mask != 0 {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            visitor.visit(query, block * LANES + lane);
        }
    }
}

/// Iterates over the blocks whose boxes are within reach of the queries' box.
struct NearBlocks<const BOTH_WAYS: bool> {
    /// Low and high ends of the box of the queries.
    low: Vec<f32>,
    high: Vec<f32>,
    batch: usize,
    /// A bit for each block of the last batch that was not yet returned.
    remaining: u32,
}

impl<const BOTH_WAYS: bool> NearBlocks<BOTH_WAYS> {
    fn new(points: &StretchedPoints, queries: &[f32]) -> Self {
        let mut low = vec![f32::INFINITY; points.axes];
        let mut high = vec![f32::NEG_INFINITY; points.axes];
        for query in queries.chunks_exact(points.axes) {
            for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(query) {
                // A missing query is NaN, which changes neither bound.
                *low = low.min(value);
                *high = high.max(value);
            }
        }
        Self {
            low,
            high,
            batch: 0,
            remaining: 0,
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    fn next<V: PairVisitor>(&mut self, points: &StretchedPoints, visitor: &V) -> Option<usize> {
        while self.remaining == 0 {
            if self.batch * LANES >= points.block_count() {
                return None;
            }
            self.remaining = self.within(points, visitor, self.batch);
            self.batch += 1;
        }
        let lane = self.remaining.trailing_zeros() as usize;
        self.remaining &= self.remaining - 1;
        Some((self.batch - 1) * LANES + lane)
    }

    /// Returns a bit for each block of the batch, set if the block is within reach.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    fn within<V: PairVisitor>(&self, points: &StretchedPoints, visitor: &V, batch: usize) -> u32 {
        let size = points.axes * LANES;
        let boxes = batch * size..(batch + 1) * size;
        let ends = points.low[boxes.clone()]
            .chunks_exact(LANES)
            .zip(points.high[boxes].chunks_exact(LANES));
        let mut squared = [0.0_f32; LANES];
        for ((low, high), (box_low, box_high)) in ends.zip(self.low.iter().zip(&self.high)) {
            for lane in 0..LANES {
                let beyond = (low[lane] - box_high).max(box_low - high[lane]).max(0.0);
                squared[lane] += beyond * beyond;
            }
        }
        let furthest = visitor.reach().iter().copied().fold(-1.0, f32::max);
        let block_reaches = if BOTH_WAYS {
            *visitor.batch_reach(batch)
        } else {
            [-1.0; LANES]
        };
        let mut within = 0;
        for lane in 0..LANES {
            let near = squared[lane] <= furthest.max(block_reaches[lane]);
            within |= u32::from(near) << lane;
        }
        let blocks = points.block_count() - batch * LANES;
        if blocks < LANES {
            within &= (1 << blocks) - 1;
        }
        within
    }
}
