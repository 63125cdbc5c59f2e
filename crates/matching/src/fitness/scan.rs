//! The distances of a few queries to every point, with the widest instructions there are.
//!
//! A point is told only if it may be within reach. The answer is the same for every width: each
//! distance is one sum in the order of the axes, and multiplication is fused with addition.

use crate::fitness::blocks::{LANES, Stretched};

/// Queries that look into a block together.
pub const TOGETHER: usize = 4;

/// Hears of a query, a point and their squared distance; answers how far the query now reaches.
pub trait Hits {
    /// Called for each point within the query's reach, in the order of the points.
    fn hit(&mut self, query: usize, point: usize, squared: f64) -> f64;
}

/// Tells `hits` of every point that lies within the reach of a query, which each hit may shorten.
///
/// `queries` are `TOGETHER` stretched points, one after another.
pub fn scan<H: Hits>(points: &Stretched, queries: &[f64], reach: [f64; TOGETHER], hits: &mut H) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has just said that it knows AVX-512.
            return unsafe { scan_with_avx512(points, queries, reach, hits) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has just said that it knows AVX2 and FMA.
            return unsafe { scan_with_avx2(points, queries, reach, hits) };
        }
    }
    scan_by_parts::<H, 1>(points, queries, reach, hits);
}

/// # Safety
/// The processor must know AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn scan_with_avx512<H: Hits>(
    points: &Stretched,
    queries: &[f64],
    reach: [f64; TOGETHER],
    hits: &mut H,
) {
    use std::arch::x86_64::{
        _CMP_LE_OQ, _mm512_cmp_pd_mask, _mm512_fmadd_pd, _mm512_loadu_pd, _mm512_set1_pd,
        _mm512_setzero_pd, _mm512_storeu_pd, _mm512_sub_pd,
    };
    const HALF: usize = LANES / 2;
    let axes = points.axes;
    assert!(queries.len() == axes * TOGETHER);
    let mut reach = reach;
    let mut reaches = reach.map(|reach| _mm512_set1_pd(reach));
    for (block, coordinates) in points.blocks.chunks_exact(axes * LANES).enumerate() {
        let mut low = [_mm512_setzero_pd(); TOGETHER];
        let mut high = [_mm512_setzero_pd(); TOGETHER];
        for axis in 0..axes {
            let first = coordinates[axis * LANES..].as_ptr();
            // SAFETY: a block has LANES numbers for each axis.
            let (left, right) =
                unsafe { (_mm512_loadu_pd(first), _mm512_loadu_pd(first.add(HALF))) };
            for query in 0..TOGETHER {
                // SAFETY: there are `axes` numbers for each query, as asserted.
                let centre = _mm512_set1_pd(unsafe { *queries.get_unchecked(query * axes + axis) });
                let (before, after) = (_mm512_sub_pd(left, centre), _mm512_sub_pd(right, centre));
                low[query] = _mm512_fmadd_pd(before, before, low[query]);
                high[query] = _mm512_fmadd_pd(after, after, high[query]);
            }
        }
        for query in 0..TOGETHER {
            let near = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(low[query], reaches[query]);
            let far = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(high[query], reaches[query]);
            let mut within = u32::from(near) | (u32::from(far) << HALF);
            if within == 0 {
                continue;
            }
            let mut squared = [0.0; LANES];
            // SAFETY: there is room for LANES numbers.
            unsafe {
                _mm512_storeu_pd(squared.as_mut_ptr(), low[query]);
                _mm512_storeu_pd(squared.as_mut_ptr().add(HALF), high[query]);
            }
            while within != 0 {
                let lane = within.trailing_zeros() as usize;
                within &= within - 1;
                if squared[lane] <= reach[query] {
                    reach[query] = hits.hit(query, block * LANES + lane, squared[lane]);
                }
            }
            reaches[query] = _mm512_set1_pd(reach[query]);
        }
    }
}

/// # Safety
/// The processor must know AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn scan_with_avx2<H: Hits>(
    points: &Stretched,
    queries: &[f64],
    reach: [f64; TOGETHER],
    hits: &mut H,
) {
    // So many sums fit into the registers.
    scan_by_parts::<H, 2>(points, queries, reach, hits);
}

#[inline(always)]
#[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
fn scan_by_parts<H: Hits, const PART: usize>(
    points: &Stretched,
    queries: &[f64],
    mut reach: [f64; TOGETHER],
    hits: &mut H,
) {
    let axes = points.axes;
    for (block, coordinates) in points.blocks.chunks_exact(axes * LANES).enumerate() {
        for part in (0..TOGETHER).step_by(PART) {
            let mut squared = [[0.0; LANES]; PART];
            for (axis, values) in coordinates.chunks_exact(LANES).enumerate() {
                for (place, sums) in squared.iter_mut().enumerate() {
                    let centre = queries[(part + place) * axes + axis];
                    for (sum, value) in sums.iter_mut().zip(values) {
                        let difference = value - centre;
                        *sum = difference.mul_add(difference, *sum);
                    }
                }
            }
            for (place, sums) in squared.iter().enumerate() {
                let query = part + place;
                let mut any = false;
                for &sum in sums {
                    any |= sum <= reach[query];
                }
                if !any {
                    continue;
                }
                for (lane, &sum) in sums.iter().enumerate() {
                    if sum <= reach[query] {
                        reach[query] = hits.hit(query, block * LANES + lane, sum);
                    }
                }
            }
        }
    }
}
