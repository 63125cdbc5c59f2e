//! The nearest neighbours of points, with all that tie: every distance, or a tree of boxes.
//!
//! Both ways compute a distance by the same instructions, so they find the same.

#[cfg(target_arch = "x86_64")]
use crate::instructions::{ByAvx2, ByAvx512};
use crate::instructions::{Instructions, LANES, Portable, Wide};
use crate::neighbours::{Admitted, Query, SearchResult};
use crate::pool::Pool;
use crate::tree::Child;

/// Bounds are compared with a reach that is longer by this factor: their rounding must not hide a
/// neighbour.
const CAUTION: f64 = 1.0 + 1e-12;
/// Bytes of blocks that stay in a core's cache while many queries pass over them.
const CACHED: usize = 1 << 18;

/// Where neighbours are sought, and how.
pub struct Search<'a> {
    /// The points.
    pub pool: &'a Pool,
    /// Which of them a query may have.
    pub admitted: &'a Admitted<'a>,
    /// Whether the tree is used; else every distance is computed.
    pub by_tree: bool,
    /// Instructions of the processor.
    pub instructions: Instructions,
}

impl Search<'_> {
    /// Finds the neighbours of each query.
    ///
    /// # Panics
    /// If the processor lacks the instructions.
    pub fn run(&self, queries: &[Query<'_>]) -> Vec<SearchResult> {
        let mut results = Vec::new();
        results.resize_with(queries.len(), SearchResult::default);
        let places = &mut results[..];
        assert!(self.instructions.available());
        match self.instructions {
            // SAFETY: the processor has just said that it has these instructions.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { self.by_avx512(queries, places) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { self.by_avx2(queries, places) },
            // SAFETY: no requirement.
            _ => unsafe { self.by::<Portable, 1>(queries, places) },
        }
        results
    }

    /// # Safety
    /// The processor must have AVX-512F, AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx2,fma")]
    unsafe fn by_avx512(&self, queries: &[Query<'_>], results: &mut [SearchResult]) {
        // SAFETY: by the caller. Sixteen sums, two parts of a block: 18 of 32 registers.
        unsafe { self.by::<ByAvx512, 8>(queries, results) }
    }

    /// # Safety
    /// The processor must have AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn by_avx2(&self, queries: &[Query<'_>], results: &mut [SearchResult]) {
        // SAFETY: by the caller. Eight sums, four parts of a block: 12 of 16 registers.
        unsafe { self.by::<ByAvx2, 2>(queries, results) }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    unsafe fn by<W: Wide, const TOGETHER: usize>(
        &self,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
    ) {
        for (query, result) in queries.iter().zip(results.iter_mut()) {
            result.begin(query, self.admitted);
        }
        if self.by_tree {
            let mut waiting = Vec::new();
            for (query, result) in queries.iter().zip(results.iter_mut()) {
                // SAFETY: by the caller.
                unsafe { self.through_tree::<W>(query, result, &mut waiting) };
            }
        } else {
            // SAFETY: by the caller.
            unsafe { self.everywhere::<W, TOGETHER>(queries, results) };
        }
        results.iter_mut().for_each(SearchResult::end);
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    unsafe fn through_tree<W: Wide>(
        &self,
        query: &Query<'_>,
        result: &mut SearchResult,
        waiting: &mut Vec<(f64, Child)>,
    ) {
        waiting.push((0.0, Child::Node(0)));
        while let Some((bound, child)) = waiting.pop() {
            if bound > CAUTION * result.reach() {
                continue;
            }
            let node = match child {
                Child::Block(block) => {
                    // SAFETY: by the caller.
                    unsafe { self.look_into::<W>(query, result, block) };
                    continue;
                }
                Child::Node(node) => node,
            };
            result.nodes += 1;
            let mut bounds = [0.0; LANES];
            // SAFETY: by the caller.
            let mut near = unsafe { self.bounds::<W>(query, node, result.reach(), &mut bounds) };
            let first = waiting.len();
            while near != 0 {
                let lane = near.trailing_zeros() as usize;
                near &= near - 1;
                // The nearest last, so that it is taken next.
                let bound = bounds[lane];
                let mut place = waiting.len();
                waiting.push((bound, self.pool.tree.child(node, lane)));
                while place > first && waiting[place - 1].0 < bound {
                    waiting.swap(place - 1, place);
                    place -= 1;
                }
            }
        }
    }

    /// Lower bounds of the distances of the node's child boxes; the bits of the boxes that are
    /// within reach and not excluded by the fence.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    unsafe fn bounds<W: Wide>(
        &self,
        query: &Query<'_>,
        node: usize,
        reach: f64,
        bounds: &mut [f64; LANES],
    ) -> u32 {
        let boxes = self.pool.tree.boxes(node);
        let (near, fenced) = boxes.split_at(2 * LANES * self.pool.dimensions);
        // SAFETY: by the caller.
        unsafe {
            let zero = W::splat(0.0);
            let outside = |ends: &[f64], value: f64| {
                let value = W::splat(value);
                let below = W::load(ends).minus(value);
                below.or_more(value.minus(W::load(&ends[LANES..])))
            };
            let mut squared = zero;
            for (ends, &value) in near.chunks_exact(2 * LANES).zip(query.point) {
                squared = outside(ends, value).or_more(zero).squared_plus(squared);
            }
            squared.store(bounds);
            // A lane without a child is infinitely far.
            let mut open = squared.at_most(W::splat((CAUTION * reach).min(f64::MAX)));
            for (ends, &(value, distance)) in fenced.chunks_exact(2 * LANES).zip(&query.fence) {
                open &= outside(ends, value).at_most(W::splat(distance));
            }
            open
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    unsafe fn look_into<W: Wide>(
        &self,
        query: &Query<'_>,
        result: &mut SearchResult,
        block: usize,
    ) {
        result.blocks += 1;
        // SAFETY: by the caller.
        let (squared, near) = unsafe {
            let mut squared = W::splat(0.0);
            let axes = self.pool.block(block).chunks_exact(LANES);
            for (axis, &centre) in axes.zip(query.point) {
                squared = W::load(axis).minus(W::splat(centre)).squared_plus(squared);
            }
            (squared, squared.at_most(W::splat(result.reach())))
        };
        if near != 0 {
            let mut distances = [0.0; LANES];
            // SAFETY: by the caller.
            unsafe { squared.store(&mut distances) };
            let near = (&distances, near);
            result.consider(self.pool, query, self.admitted, block, near);
        }
    }

    /// Every distance, of some queries and one block at a time.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    unsafe fn everywhere<W: Wide, const TOGETHER: usize>(
        &self,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
    ) {
        let mut tiles: Vec<Tile<TOGETHER>> = Vec::new();
        for (queries, results) in queries.chunks(TOGETHER).zip(results.chunks_mut(TOGETHER)) {
            let mut tile = Tile::new(queries, self.pool.dimensions);
            for (lane, (query, result)) in queries.iter().zip(results).enumerate() {
                tile.reach[lane] = result.reach();
                if self.pool.tree.is_flat() {
                    continue;
                }
                // A query that starts near its neighbours finds few points that it must drop later.
                // SAFETY: by the caller.
                let block = unsafe { self.nearest_block::<W>(query) };
                // SAFETY: by the caller.
                unsafe { self.look_into::<W>(query, result, block) };
                tile.first[lane] = block;
                tile.reach[lane] = result.reach();
            }
            tiles.push(tile);
        }
        let size = LANES * self.pool.dimensions * size_of::<f64>();
        let at_once = (CACHED / size).max(1);
        for start in (0..self.pool.block_count()).step_by(at_once) {
            let end = (start + at_once).min(self.pool.block_count());
            let chunks = queries.chunks(TOGETHER).zip(results.chunks_mut(TOGETHER));
            for (tile, (queries, results)) in tiles.iter_mut().zip(chunks) {
                for block in start..end {
                    // SAFETY: by the caller.
                    unsafe { self.tile_with::<W, TOGETHER>(tile, queries, results, block) };
                }
            }
        }
        for result in results {
            result.blocks = self.pool.block_count();
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    unsafe fn tile_with<W: Wide, const TOGETHER: usize>(
        &self,
        tile: &mut Tile<TOGETHER>,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
        block: usize,
    ) {
        // SAFETY: by the caller.
        unsafe {
            let mut squared = [W::splat(0.0); TOGETHER];
            let axes = self.pool.block(block).chunks_exact(LANES);
            for (axis, centres) in axes.zip(&tile.points) {
                let lanes = W::load(axis);
                for (sum, &centre) in squared.iter_mut().zip(centres) {
                    *sum = lanes.minus(W::splat(centre)).squared_plus(*sum);
                }
            }
            let mut near = [0; TOGETHER];
            let mut any = 0;
            for ((near, sum), &reach) in near.iter_mut().zip(squared).zip(&tile.reach) {
                *near = sum.at_most(W::splat(reach));
                any |= *near;
            }
            if any == 0 {
                return;
            }
            for (lane, sum) in squared.into_iter().enumerate() {
                if near[lane] != 0 && tile.first[lane] != block {
                    let mut distances = [0.0; LANES];
                    sum.store(&mut distances);
                    let result = &mut results[lane];
                    let near = (&distances, near[lane]);
                    result.consider(self.pool, &queries[lane], self.admitted, block, near);
                    tile.reach[lane] = result.reach();
                }
            }
        }
    }

    /// The block that is found by always entering the nearest box; the first block if the fence
    /// excludes all.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    unsafe fn nearest_block<W: Wide>(&self, query: &Query<'_>) -> usize {
        let mut node = 0;
        loop {
            let mut bounds = [0.0; LANES];
            // SAFETY: by the caller.
            let open = unsafe { self.bounds::<W>(query, node, f64::INFINITY, &mut bounds) };
            let nearest = (0..LANES)
                .filter(|lane| open >> lane & 1 == 1)
                .min_by(|&left, &right| bounds[left].total_cmp(&bounds[right]));
            let Some(lane) = nearest else {
                return 0;
            };
            match self.pool.tree.child(node, lane) {
                Child::Block(block) => return block,
                Child::Node(below) => node = below,
            }
        }
    }
}

/// Some queries whose distances to a block are computed together.
struct Tile<const TOGETHER: usize> {
    /// Axis after axis: the coordinate of each query.
    points: Vec<[f64; TOGETHER]>,
    /// Nothing is near if the query is missing.
    reach: [f64; TOGETHER],
    /// The block that each query has looked into already.
    first: [usize; TOGETHER],
}

impl<const TOGETHER: usize> Tile<TOGETHER> {
    fn new(queries: &[Query<'_>], dimensions: usize) -> Self {
        let mut points = vec![[0.0; TOGETHER]; dimensions];
        for (lane, query) in queries.iter().enumerate() {
            for (axis, &value) in points.iter_mut().zip(query.point) {
                axis[lane] = value;
            }
        }
        Self {
            points,
            reach: [-1.0; TOGETHER],
            first: [usize::MAX; TOGETHER],
        }
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
