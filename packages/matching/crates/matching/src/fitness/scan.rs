//! Which pairs of points may be within reach of each other, with the widest instructions there are.
//!
//! Distances are computed in single precision against reaches that are raised by its rounding, so
//! that no pair is overlooked. The visitor of a pair computes its distance again. A block is left
//! out if its box is beyond reach of the queries' box; the box of rounded points bounds the rounded
//! distances, so the same reaches serve.

use crate::fitness::blocks::{LANES, Stretched, TOGETHER};
use crate::instructions::Instructions;

/// Visitor of pairs, with the reach of each point.
pub trait Hits {
    /// Largest distance of each query; less than 0 for missing queries.
    fn reach(&self) -> &[f32; TOGETHER];

    /// Largest distance of the points of a block; only if both ways are searched.
    fn reach_of_block(&self, _block: usize) -> &[f32; LANES] {
        &[-1.0; LANES]
    }

    /// The furthest of them in each block of a batch of `LANES` blocks; only if both are asked for.
    fn reach_of_batch(&self, _batch: usize) -> &[f32; LANES] {
        &[-1.0; LANES]
    }

    /// Called for each pair that may be within reach, queries first, in the order of the points.
    fn hit(&mut self, query: usize, point: usize);
}

/// Reports to `hits` every pair within the reach of the query or, with `BOTH`, of the point.
///
/// `queries` are `TOGETHER` stretched points, one after another.
pub fn scan<H: Hits, const BOTH: bool>(
    instructions: Instructions,
    points: &Stretched,
    queries: &[f32],
    hits: &mut H,
) {
    assert!(queries.len() == points.axes * TOGETHER);
    assert!(instructions.available());
    match instructions {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the check above found AVX-512.
        Instructions::Avx512 => unsafe { scan_with_avx512::<H, BOTH>(points, queries, hits) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the check above found AVX2 and FMA.
        Instructions::Avx2 => unsafe { scan_with_avx2::<H, BOTH>(points, queries, hits) },
        _ => scan_by_parts::<H, BOTH, false>(points, queries, hits),
    }
}

/// # Safety
/// The processor must have AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn scan_with_avx512<H: Hits, const BOTH: bool>(
    points: &Stretched,
    queries: &[f32],
    hits: &mut H,
) {
    use std::arch::x86_64::{
        _CMP_LE_OQ, _mm512_cmp_ps_mask, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps,
        _mm512_setzero_ps, _mm512_sub_ps,
    };
    let axes = points.axes;
    let mut near = Near::<BOTH>::new(points, queries);
    while let Some(block) = near.next(points, hits) {
        let coordinates = points.block(block);
        let mut squared = [_mm512_setzero_ps(); TOGETHER];
        for axis in 0..axes {
            // SAFETY: a block has LANES numbers for each axis.
            let values = unsafe { _mm512_loadu_ps(coordinates.as_ptr().add(axis * LANES)) };
            for (query, sum) in squared.iter_mut().enumerate() {
                // SAFETY: there are as many numbers for each query, as `scan` asserts.
                let centre = unsafe { *queries.get_unchecked(query * axes + axis) };
                let apart = _mm512_sub_ps(values, _mm512_set1_ps(centre));
                *sum = _mm512_fmadd_ps(apart, apart, *sum);
            }
        }
        let mut within = [0_u16; TOGETHER];
        let reach = hits.reach();
        for (query, mask) in within.iter_mut().enumerate() {
            *mask = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(squared[query], _mm512_set1_ps(reach[query]));
        }
        if BOTH {
            // SAFETY: there are LANES numbers.
            let reach = unsafe { _mm512_loadu_ps(hits.reach_of_block(block).as_ptr()) };
            for (query, mask) in within.iter_mut().enumerate() {
                *mask |= _mm512_cmp_ps_mask::<_CMP_LE_OQ>(squared[query], reach);
            }
        }
        if within != [0; TOGETHER] {
            tell(block, within, hits);
        }
    }
}

/// # Safety
/// The processor must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn scan_with_avx2<H: Hits, const BOTH: bool>(
    points: &Stretched,
    queries: &[f32],
    hits: &mut H,
) {
    scan_by_parts::<H, BOTH, true>(points, queries, hits);
}

#[inline(always)]
#[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
fn scan_by_parts<H: Hits, const BOTH: bool, const FUSED: bool>(
    points: &Stretched,
    queries: &[f32],
    hits: &mut H,
) {
    // Number of sums that fit into the registers.
    const PART: usize = 4;
    let axes = points.axes;
    let mut near = Near::<BOTH>::new(points, queries);
    while let Some(block) = near.next(points, hits) {
        let coordinates = points.block(block);
        let mut within = [0_u16; TOGETHER];
        for part in (0..TOGETHER).step_by(PART) {
            let mut squared = [[0.0_f32; LANES]; PART];
            for (axis, values) in coordinates.chunks_exact(LANES).enumerate() {
                for (place, sums) in squared.iter_mut().enumerate() {
                    let centre = queries[(part + place) * axes + axis];
                    for (sum, value) in sums.iter_mut().zip(values) {
                        let apart = value - centre;
                        *sum = if FUSED {
                            apart.mul_add(apart, *sum)
                        } else {
                            *sum + apart * apart
                        };
                    }
                }
            }
            for (place, sums) in squared.iter().enumerate() {
                let query = part + place;
                let reach = hits.reach()[query];
                let of_block = if BOTH {
                    *hits.reach_of_block(block)
                } else {
                    [-1.0; LANES]
                };
                for lane in 0..LANES {
                    let near = sums[lane] <= reach || (BOTH && sums[lane] <= of_block[lane]);
                    within[query] |= u16::from(near) << lane;
                }
            }
        }
        if within != [0; TOGETHER] {
            tell(block, within, hits);
        }
    }
}

/// Tells of the pairs of a block whose bits are set.
#[inline(always)]
#[allow(clippy::inline_always)] // It is the inner loop.
fn tell<H: Hits>(block: usize, within: [u16; TOGETHER], hits: &mut H) {
    for (query, mut mask) in within.into_iter().enumerate() {
        while mask != 0 {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            hits.hit(query, block * LANES + lane);
        }
    }
}

/// The blocks whose boxes are within reach, one after another.
struct Near<const BOTH: bool> {
    /// The box of the queries.
    low: Vec<f32>,
    high: Vec<f32>,
    batch: usize,
    /// Blocks of the last batch that are still to come.
    left: u32,
}

impl<const BOTH: bool> Near<BOTH> {
    fn new(points: &Stretched, queries: &[f32]) -> Self {
        let mut low = vec![f32::INFINITY; points.axes];
        let mut high = vec![f32::NEG_INFINITY; points.axes];
        for query in queries.chunks_exact(points.axes) {
            for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(query) {
                // A query that is not there is not a number, and leaves both as they are.
                *low = low.min(value);
                *high = high.max(value);
            }
        }
        Self {
            low,
            high,
            batch: 0,
            left: 0,
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    fn next<H: Hits>(&mut self, points: &Stretched, hits: &H) -> Option<usize> {
        while self.left == 0 {
            if self.batch * LANES >= points.block_count() {
                return None;
            }
            self.left = self.within(points, hits, self.batch);
            self.batch += 1;
        }
        let lane = self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some((self.batch - 1) * LANES + lane)
    }

    /// A bit for each block of the batch that is within reach.
    #[inline(always)]
    #[allow(clippy::inline_always)] // As `next`.
    fn within<H: Hits>(&self, points: &Stretched, hits: &H, batch: usize) -> u32 {
        let size = points.axes * LANES;
        let boxes = batch * size..(batch + 1) * size;
        let ends = points.low[boxes.clone()]
            .chunks_exact(LANES)
            .zip(points.high[boxes].chunks_exact(LANES));
        let mut squared = [0.0_f32; LANES];
        for ((low, high), (own_low, own_high)) in ends.zip(self.low.iter().zip(&self.high)) {
            for lane in 0..LANES {
                let beyond = (low[lane] - own_high).max(own_low - high[lane]).max(0.0);
                squared[lane] += beyond * beyond;
            }
        }
        let furthest = hits.reach().iter().copied().fold(-1.0, f32::max);
        let of_blocks = if BOTH {
            *hits.reach_of_batch(batch)
        } else {
            [-1.0; LANES]
        };
        let mut within = 0;
        for lane in 0..LANES {
            let near = squared[lane] <= furthest.max(of_blocks[lane]);
            within |= u32::from(near) << lane;
        }
        let blocks = points.block_count() - batch * LANES;
        if blocks < LANES {
            within &= (1 << blocks) - 1;
        }
        within
    }
}
