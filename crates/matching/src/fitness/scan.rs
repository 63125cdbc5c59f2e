//! Which pairs of points may be within reach of each other, with the widest instructions there are.
//!
//! Distances are computed in single precision against reaches that are raised by its rounding, so
//! that no pair is overlooked. Whoever hears of a pair computes its distance anew.

use std::ops::Range;

use crate::fitness::blocks::{LANES, Stretched};

/// Queries that look into a block together.
pub const TOGETHER: usize = 8;

/// Hears of pairs, and knows how far each point reaches.
pub trait Hits {
    /// How far the queries reach; less than 0 for those that are not there.
    fn reach(&self) -> &[f32; TOGETHER];

    /// How far the points of a block reach; only if both ways are asked for.
    fn reach_of_block(&self, block: usize) -> &[f32; LANES];

    /// Called for each pair that may be within reach, queries first, in the order of the points.
    fn hit(&mut self, query: usize, point: usize);
}

/// Tells `hits` of every pair within reach: of the query's, or with `BOTH` of the point's.
///
/// `queries` are `TOGETHER` stretched points, one after another, padded.
pub fn scan<H: Hits, const BOTH: bool>(
    points: &Stretched,
    blocks: Range<usize>,
    queries: &[f32],
    hits: &mut H,
) {
    assert!(queries.len() == points.stride * TOGETHER && points.axes <= points.stride);
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has just said that it knows AVX-512.
            return unsafe { scan_with_avx512::<H, BOTH>(points, blocks, queries, hits) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has just said that it knows AVX2 and FMA.
            return unsafe { scan_with_avx2::<H, BOTH>(points, blocks, queries, hits) };
        }
    }
    scan_by_parts::<H, BOTH, false>(points, blocks, queries, hits);
}

/// # Safety
/// The processor must know AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn scan_with_avx512<H: Hits, const BOTH: bool>(
    points: &Stretched,
    blocks: Range<usize>,
    queries: &[f32],
    hits: &mut H,
) {
    use std::arch::x86_64::{
        _CMP_LE_OQ, _mm512_cmp_ps_mask, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps,
        _mm512_setzero_ps, _mm512_sub_ps,
    };
    let (axes, stride) = (points.axes, points.stride);
    let size = axes * LANES;
    for block in blocks {
        let coordinates = &points.blocks[block * size..(block + 1) * size];
        let mut squared = [_mm512_setzero_ps(); TOGETHER];
        for axis in 0..axes {
            // SAFETY: a block has LANES numbers for each axis.
            let values = unsafe { _mm512_loadu_ps(coordinates.as_ptr().add(axis * LANES)) };
            for (query, sum) in squared.iter_mut().enumerate() {
                // SAFETY: there are as many numbers for each query, as `scan` asserts.
                let centre = unsafe { *queries.get_unchecked(query * stride + axis) };
                let apart = _mm512_sub_ps(values, _mm512_set1_ps(centre));
                *sum = _mm512_fmadd_ps(apart, apart, *sum);
            }
        }
        let mut within = [0_u16; TOGETHER];
        let mut any = 0;
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
        for mask in within {
            any |= mask;
        }
        if any == 0 {
            continue;
        }
        tell(block, within, hits);
    }
}

/// # Safety
/// The processor must know AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn scan_with_avx2<H: Hits, const BOTH: bool>(
    points: &Stretched,
    blocks: Range<usize>,
    queries: &[f32],
    hits: &mut H,
) {
    scan_by_parts::<H, BOTH, true>(points, blocks, queries, hits);
}

#[inline(always)]
#[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
fn scan_by_parts<H: Hits, const BOTH: bool, const FUSED: bool>(
    points: &Stretched,
    blocks: Range<usize>,
    queries: &[f32],
    hits: &mut H,
) {
    // So many sums fit into the registers.
    const PART: usize = 4;
    let (axes, stride) = (points.axes, points.stride);
    let size = axes * LANES;
    for block in blocks {
        let coordinates = &points.blocks[block * size..(block + 1) * size];
        let mut within = [0_u16; TOGETHER];
        for part in (0..TOGETHER).step_by(PART) {
            let mut squared = [[0.0_f32; LANES]; PART];
            for (axis, values) in coordinates.chunks_exact(LANES).enumerate() {
                for (place, sums) in squared.iter_mut().enumerate() {
                    let centre = queries[(part + place) * stride + axis];
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
