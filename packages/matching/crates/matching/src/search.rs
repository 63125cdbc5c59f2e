//! Finds the nearest neighbours of points, with ties: by every distance, or by a tree of boxes.
//!
//! Both ways compute a distance by the same instructions, so they find the same neighbours.

use crate::filter::{Filter, FilterTile, near_boxes, near_points};
use crate::instructions::{Instructions, LANES, Wide, WidePortable};
#[cfg(target_arch = "x86_64")]
use crate::instructions::{WideAvx2, WideAvx512};
use crate::neighbours::{Query, SearchResult, WeightOf};
use crate::pool::Pool;
use crate::single::{Single, SinglePortable};
#[cfg(target_arch = "x86_64")]
use crate::single::{SingleAvx2, SingleAvx512};
use crate::tree::Child;

/// Factor that enlarges the reach (the largest squared distance of a neighbour) before a comparison
/// with a lower bound. So rounding hides no neighbour.
const BOUND_MARGIN: f64 = 1.0 + 1e-12;
/// Number of queries of a trial, which measures how many points a tree skips.
const TRIAL_QUERIES: usize = 24;
/// Number of places of a trial in packets.
const TRIAL_PACKETS: usize = 6;
/// Time for a block in a tree search, as a multiple of the time for a block in brute force.
const TREE_BLOCK_COST: f64 = 3.0;
/// Time for a node in a tree search, as a multiple of the time for a block in brute force.
const TREE_NODE_COST: f64 = 6.0;
/// The same multiples with a filter.
const FILTERED_BLOCK_COST: f64 = 9.0;
const FILTERED_NODE_COST: f64 = 18.0;
/// The same multiples for each query of a packet.
const PACKET_BLOCK_COST: f64 = 3.5;
const PACKET_NODE_COST: f64 = 2.0;
/// Bytes of blocks that stay in a core's cache while many queries pass over them.
const CACHED_BYTES: usize = 1 << 18;

/// The points to search, and how to search them.
pub struct Search<'a> {
    pub pool: &'a Pool,
    /// Returns the weight of a point as a neighbour, if it may be a neighbour.
    pub weight_of: &'a WeightOf<'a>,
    /// Whether the tree is used. Without it, every distance is computed.
    pub uses_tree: bool,
    /// A copy in single precision of the pool; `None` without. The queries must be points of the pool,
    /// unless each searches the tree alone.
    pub filter: Option<&'a Filter>,
    /// Whether queries that follow each other search the tree together, which needs a filter.
    pub in_packets: bool,
    pub instructions: Instructions,
}

impl Search<'_> {
    /// Returns the points of a trial among all points that will search.
    pub fn trial_points(point_count: usize) -> impl Iterator<Item = usize> {
        (0..point_count).step_by(point_count.div_ceil(TRIAL_QUERIES))
    }

    /// Returns the points of a trial in packets, which follow each other.
    pub fn trial_packets(point_count: usize) -> impl Iterator<Item = usize> {
        // The middle of each part, because the first points of a tree are often far from others.
        (0..TRIAL_PACKETS).flat_map(move |part| {
            let start = point_count * (2 * part + 1) / (2 * TRIAL_PACKETS);
            (start..point_count).take(LANES)
        })
    }

    /// Returns the costs of these queries by tree and by brute force, in units of the time in which
    /// brute force compares a query with a block. The search must use the tree.
    pub fn costs(&self, queries: &[Query<'_>]) -> (f64, f64) {
        let results = self.run(queries);
        let (block_cost, node_cost) = match self.filter {
            Some(_) if self.in_packets => (PACKET_BLOCK_COST, PACKET_NODE_COST),
            Some(_) => (FILTERED_BLOCK_COST, FILTERED_NODE_COST),
            None => (TREE_BLOCK_COST, TREE_NODE_COST),
        };
        let cost = |result: &SearchResult| {
            let (blocks, nodes) = (result.searched_blocks as f64, result.searched_nodes as f64);
            blocks * block_cost + nodes * node_cost
        };
        let comparisons = queries.len() * self.pool.block_count();
        (results.iter().map(cost).sum(), comparisons as f64)
    }

    /// Finds the neighbours of each query.
    ///
    /// # Panics
    /// If the processor lacks the instructions.
    pub fn run(&self, queries: &[Query<'_>]) -> Vec<SearchResult> {
        let mut results = Vec::new();
        results.resize_with(queries.len(), SearchResult::default);
        assert!(self.instructions.is_available());
        match self.instructions {
            // SAFETY: the assertion above checks that the processor has these instructions.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 => unsafe { self.run_with_avx512(queries, &mut results) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => unsafe { self.run_with_avx2(queries, &mut results) },
            // SAFETY: every processor has the portable instructions.
            _ => unsafe {
                self.run_with::<WidePortable, SinglePortable, 1, 2>(queries, &mut results);
            },
        }
        results
    }

    /// # Safety
    /// The processor must have AVX-512F, AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx2,fma")]
    unsafe fn run_with_avx512(&self, queries: &[Query<'_>], results: &mut [SearchResult]) {
        // SAFETY: by the caller. Sixteen sums, two registers for a block: 18 of 32 registers.
        unsafe { self.run_with::<WideAvx512, SingleAvx512, 8, 16>(queries, results) }
    }

    /// # Safety
    /// The processor must have AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn run_with_avx2(&self, queries: &[Query<'_>], results: &mut [SearchResult]) {
        // SAFETY: by the caller. Eight sums, four registers for a block: 12 of 16 registers.
        unsafe { self.run_with::<WideAvx2, SingleAvx2, 2, 4>(queries, results) }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn run_with<W: Wide, S: Single, const QUERIES: usize, const FILTERED: usize>(
        &self,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
    ) {
        for (query, result) in queries.iter().zip(results.iter_mut()) {
            result.start(query, self.weight_of);
        }
        match (self.uses_tree, self.filter) {
            (true, None) => {
                let mut pending = Vec::new();
                for (query, result) in queries.iter().zip(results.iter_mut()) {
                    // SAFETY: by the caller.
                    unsafe { self.search_tree::<W>(query, result, &mut pending) };
                }
            }
            (true, Some(filter)) if self.in_packets => {
                // SAFETY: by the caller.
                unsafe { self.filter_packets::<W, S, FILTERED>(filter, queries, results) };
            }
            (true, Some(filter)) => {
                let (mut pending, mut centre) = (Vec::new(), Vec::new());
                for (query, result) in queries.iter().zip(results.iter_mut()) {
                    filter.write_query(query.coordinates, &mut centre);
                    // SAFETY: by the caller.
                    unsafe {
                        self.filter_tree::<W, S>(filter, query, &centre, result, &mut pending);
                    }
                }
            }
            // SAFETY: by the caller.
            (false, None) => unsafe { self.search_all_blocks::<W, QUERIES>(queries, results) },
            // SAFETY: by the caller.
            (false, Some(filter)) => unsafe {
                self.filter_all_blocks::<W, S, FILTERED>(filter, queries, results);
            },
        }
        results.iter_mut().for_each(SearchResult::finish);
    }

    /// Searches the boxes within reach, nearer boxes of a node first. `pending` has the lower
    /// bounds and the children that are still to be searched; it is empty before and after.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn search_tree<W: Wide>(
        &self,
        query: &Query<'_>,
        result: &mut SearchResult,
        pending: &mut Vec<(f64, Child)>,
    ) {
        pending.push((0.0, Child::Node(0)));
        while let Some((bound, child)) = pending.pop() {
            if bound > BOUND_MARGIN * result.reach() {
                continue;
            }
            let node = match child {
                Child::Block(block) => {
                    // SAFETY: by the caller.
                    unsafe { self.search_block::<W>(query, result, block) };
                    continue;
                }
                Child::Node(node) => node,
            };
            result.searched_nodes += 1;
            let mut bounds = [0.0; LANES];
            // SAFETY: by the caller.
            let mut near = unsafe { self.bounds::<W>(query, node, result.reach(), &mut bounds) };
            let first = pending.len();
            while near != 0 {
                let lane = near.trailing_zeros() as usize;
                near &= near - 1;
                // The nearest box comes last, so that it is searched next.
                let bound = bounds[lane];
                let mut position = pending.len();
                pending.push((bound, self.pool.tree.child(node, lane)));
                while position > first && pending[position - 1].0 < bound {
                    pending.swap(position - 1, position);
                    position -= 1;
                }
            }
        }
    }

    /// Writes lower bounds of the distances to the boxes of a node's children. Returns a bit for
    /// each box, set if the box is within reach and within the calipers.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn bounds<W: Wide>(
        &self,
        query: &Query<'_>,
        node: usize,
        reach: f64,
        bounds: &mut [f64; LANES],
    ) -> u32 {
        let boxes = self.pool.tree.boxes(node);
        let (near, caliper_boxes) = boxes.split_at(2 * LANES * self.pool.dimensions);
        // SAFETY: by the caller.
        unsafe {
            let zero = W::splat(0.0);
            let outside = |ends: &[f64], value: f64| {
                let value = W::splat(value);
                let below = W::load(ends).minus(value);
                below.maximum(value.minus(W::load(&ends[LANES..])))
            };
            let mut squared = zero;
            for (ends, &value) in near.chunks_exact(2 * LANES).zip(query.coordinates) {
                squared = outside(ends, value).maximum(zero).squared_plus(squared);
            }
            squared.store(bounds);
            // A lane without a child is infinitely far.
            let mut admissible = squared.at_most(W::splat((BOUND_MARGIN * reach).min(f64::MAX)));
            let caliper_ends = caliper_boxes.chunks_exact(2 * LANES);
            for (ends, &(value, distance)) in caliper_ends.zip(&query.calipers) {
                admissible &= outside(ends, value).at_most(W::splat(distance));
            }
            admissible
        }
    }

    /// Computes the distances to the points of a block, and adds the points within reach.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn search_block<W: Wide>(
        &self,
        query: &Query<'_>,
        result: &mut SearchResult,
        block: usize,
    ) {
        result.searched_blocks += 1;
        // SAFETY: by the caller.
        let (squared, near) = unsafe {
            let mut squared = W::splat(0.0);
            let axes = self.pool.block(block).chunks_exact(LANES);
            for (axis, &centre) in axes.zip(query.coordinates) {
                squared = W::load(axis).minus(W::splat(centre)).squared_plus(squared);
            }
            (squared, squared.at_most(W::splat(result.reach())))
        };
        if near != 0 {
            let mut distances = [0.0; LANES];
            // SAFETY: by the caller.
            unsafe { squared.store(&mut distances) };
            let near = (&distances, near);
            result.add_block(self.pool, query, self.weight_of, block, near);
        }
    }

    /// Searches as `search_tree` does, with the boxes and the points of the filter.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn filter_tree<W: Wide, S: Single>(
        &self,
        filter: &Filter,
        query: &Query<'_>,
        centre: &[f32],
        result: &mut SearchResult,
        pending: &mut Vec<(f32, Child)>,
    ) {
        let mut reach = filter.reach(result.reach());
        pending.push((0.0, Child::Node(0)));
        while let Some((bound, child)) = pending.pop() {
            if bound > reach {
                continue;
            }
            let node = match child {
                Child::Block(block) => {
                    // SAFETY: by the caller.
                    let is_near = unsafe { near_points::<S>(filter, block, centre, reach) != 0 };
                    if is_near {
                        // SAFETY: by the caller.
                        unsafe { self.search_block::<W>(query, result, block) };
                        reach = filter.reach(result.reach());
                    } else {
                        result.searched_blocks += 1;
                    }
                    continue;
                }
                Child::Node(node) => node,
            };
            result.searched_nodes += 1;
            let mut bounds = [0.0; LANES];
            // SAFETY: by the caller.
            let near = unsafe {
                let ends = centre.iter().map(|&value| (value, value));
                near_boxes::<S>(filter, node, ends, reach, &mut bounds)
            };
            self.push_children(node, near, &bounds, pending);
        }
    }

    /// Adds the children of a node that are marked in `near`, the nearest last, so that it is
    /// searched next.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It is the inner loop.
    fn push_children(
        &self,
        node: usize,
        mut near: u32,
        bounds: &[f32; LANES],
        pending: &mut Vec<(f32, Child)>,
    ) {
        let first = pending.len();
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let bound = bounds[lane];
            let mut position = pending.len();
            pending.push((bound, self.pool.tree.child(node, lane)));
            while position > first && pending[position - 1].0 < bound {
                pending.swap(position - 1, position);
                position -= 1;
            }
        }
    }

    /// Searches the tree for some queries at a time, which are near each other. Each block within
    /// reach of the queries' box is compared with all of them.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn filter_packets<W: Wide, S: Single, const QUERIES: usize>(
        &self,
        filter: &Filter,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
    ) {
        let mut pending = Vec::new();
        for (queries, results) in queries.chunks(QUERIES).zip(results.chunks_mut(QUERIES)) {
            let mut tile = FilterTile::<QUERIES>::new(filter, queries, self.pool.dimensions);
            // SAFETY: by the caller.
            unsafe { self.search_own_blocks::<W, QUERIES>(&mut tile, queries, results) };
            for (limit, result) in tile.limit.iter_mut().zip(&*results) {
                *limit = filter.reach(result.reach());
            }
            let ends = tile.ends(queries.len());
            let mut reach = tile.largest_limit();
            let (mut searched_blocks, mut searched_nodes) = (0, 0);
            pending.push((0.0, Child::Node(0)));
            while let Some((bound, child)) = pending.pop() {
                if bound > reach {
                    continue;
                }
                let block = match child {
                    Child::Block(block) => block,
                    Child::Node(node) => {
                        searched_nodes += 1;
                        let mut bounds = [0.0; LANES];
                        let ends = ends.iter().copied();
                        // SAFETY: by the caller.
                        let near =
                            unsafe { near_boxes::<S>(filter, node, ends, reach, &mut bounds) };
                        self.push_children(node, near, &bounds, &mut pending);
                        continue;
                    }
                };
                searched_blocks += 1;
                // SAFETY: by the caller.
                let near = unsafe { tile.near_by_differences::<S>(filter, block) };
                if near == 0 {
                    continue;
                }
                for (slot, (query, result)) in queries.iter().zip(&mut *results).enumerate() {
                    if near >> slot & 1 == 1 && tile.first_block[slot] != block {
                        // SAFETY: by the caller.
                        unsafe { self.search_block::<W>(query, result, block) };
                        tile.limit[slot] = filter.reach(result.reach());
                    }
                }
                reach = tile.largest_limit();
            }
            for result in results {
                result.searched_blocks = searched_blocks;
                result.searched_nodes = searched_nodes;
            }
        }
    }

    /// Searches the block of each query itself, whose points are near because of the tree's order.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn search_own_blocks<W: Wide, const QUERIES: usize>(
        &self,
        tile: &mut FilterTile<QUERIES>,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
    ) {
        for (slot, (query, result)) in queries.iter().zip(results).enumerate() {
            let block = query.point / LANES;
            // SAFETY: by the caller.
            unsafe { self.search_block::<W>(query, result, block) };
            tile.first_block[slot] = block;
        }
    }

    /// Compares the queries with all blocks of the filter, and computes the distances to the blocks
    /// that may have a near point.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn filter_all_blocks<W: Wide, S: Single, const QUERIES: usize>(
        &self,
        filter: &Filter,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
    ) {
        let mut tiles: Vec<FilterTile<QUERIES>> = Vec::new();
        for (queries, results) in queries.chunks(QUERIES).zip(results.chunks_mut(QUERIES)) {
            let mut tile = FilterTile::new(filter, queries, self.pool.dimensions);
            // SAFETY: by the caller.
            unsafe { self.search_own_blocks::<W, QUERIES>(&mut tile, queries, results) };
            let halves = tile.half_norm.iter().zip(&*results);
            for (limit, (&half_norm, result)) in tile.limit.iter_mut().zip(halves) {
                *limit = filter.product_limit(half_norm, result.reach());
            }
            tiles.push(tile);
        }
        let cached_blocks = (CACHED_BYTES / filter.block_bytes()).max(1);
        for start in (0..self.pool.block_count()).step_by(cached_blocks) {
            let end = (start + cached_blocks).min(self.pool.block_count());
            let chunks = queries.chunks(QUERIES).zip(results.chunks_mut(QUERIES));
            for (tile, (queries, results)) in tiles.iter_mut().zip(chunks) {
                for block in start..end {
                    // SAFETY: by the caller.
                    let near = unsafe { tile.near_by_products::<S>(filter, block) };
                    if near == 0 {
                        continue;
                    }
                    for (slot, (query, result)) in queries.iter().zip(&mut *results).enumerate() {
                        if near >> slot & 1 == 1 && tile.first_block[slot] != block {
                            // SAFETY: by the caller.
                            unsafe { self.search_block::<W>(query, result, block) };
                            let reach = result.reach();
                            tile.limit[slot] = filter.product_limit(tile.half_norm[slot], reach);
                        }
                    }
                }
            }
        }
        for result in results {
            result.searched_blocks = self.pool.block_count();
        }
    }

    /// Computes every distance, for some queries and one block at a time.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn search_all_blocks<W: Wide, const QUERIES: usize>(
        &self,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
    ) {
        let mut tiles: Vec<Tile<QUERIES>> = Vec::new();
        for (queries, results) in queries.chunks(QUERIES).zip(results.chunks_mut(QUERIES)) {
            let mut tile = Tile::new(queries, self.pool.dimensions);
            for (slot, (query, result)) in queries.iter().zip(results).enumerate() {
                tile.reach[slot] = result.reach();
                if self.pool.tree.is_empty() {
                    continue;
                }
                // With the nearest block first, fewer points are added and dropped again.
                // SAFETY: by the caller.
                let block = unsafe { self.nearest_block::<W>(query) };
                // SAFETY: by the caller.
                unsafe { self.search_block::<W>(query, result, block) };
                tile.first_block[slot] = block;
                tile.reach[slot] = result.reach();
            }
            tiles.push(tile);
        }
        let size = LANES * self.pool.dimensions * size_of::<f64>();
        let cached_blocks = (CACHED_BYTES / size).max(1);
        for start in (0..self.pool.block_count()).step_by(cached_blocks) {
            let end = (start + cached_blocks).min(self.pool.block_count());
            let chunks = queries.chunks(QUERIES).zip(results.chunks_mut(QUERIES));
            for (tile, (queries, results)) in tiles.iter_mut().zip(chunks) {
                for block in start..end {
                    // SAFETY: by the caller.
                    unsafe { self.compare_tile::<W, QUERIES>(tile, queries, results, block) };
                }
            }
        }
        for result in results {
            result.searched_blocks = self.pool.block_count();
        }
    }

    /// Computes the distances between the queries of a tile and the points of a block.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn compare_tile<W: Wide, const QUERIES: usize>(
        &self,
        tile: &mut Tile<QUERIES>,
        queries: &[Query<'_>],
        results: &mut [SearchResult],
        block: usize,
    ) {
        // SAFETY: by the caller.
        unsafe {
            let mut squared = [W::splat(0.0); QUERIES];
            let axes = self.pool.block(block).chunks_exact(LANES);
            for (axis, centres) in axes.zip(&tile.points) {
                let lanes = W::load(axis);
                for (sum, &centre) in squared.iter_mut().zip(centres) {
                    *sum = lanes.minus(W::splat(centre)).squared_plus(*sum);
                }
            }
            let mut near = [0; QUERIES];
            let mut any_near = 0;
            for ((near, sum), &reach) in near.iter_mut().zip(squared).zip(&tile.reach) {
                *near = sum.at_most(W::splat(reach));
                any_near |= *near;
            }
            if any_near == 0 {
                return;
            }
            for (slot, sum) in squared.into_iter().enumerate() {
                if near[slot] != 0 && tile.first_block[slot] != block {
                    let mut distances = [0.0; LANES];
                    sum.store(&mut distances);
                    let result = &mut results[slot];
                    let near = (&distances, near[slot]);
                    result.add_block(self.pool, &queries[slot], self.weight_of, block, near);
                    tile.reach[slot] = result.reach();
                }
            }
        }
    }

    /// Goes from the root to the nearest box of each node, and returns the block at the end.
    /// Returns the first block if the calipers exclude all boxes.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn nearest_block<W: Wide>(&self, query: &Query<'_>) -> usize {
        let mut node = 0;
        loop {
            let mut bounds = [0.0; LANES];
            // SAFETY: by the caller.
            let admissible = unsafe { self.bounds::<W>(query, node, f64::INFINITY, &mut bounds) };
            let nearest = (0..LANES)
                .filter(|lane| admissible >> lane & 1 == 1)
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
struct Tile<const QUERIES: usize> {
    /// Coordinates of the queries, axis after axis.
    points: Vec<[f64; QUERIES]>,
    /// Reach of each query. It is negative for a missing query, so that no point is near.
    reach: [f64; QUERIES],
    /// The block that was searched first for each query.
    first_block: [usize; QUERIES],
}

impl<const QUERIES: usize> Tile<QUERIES> {
    fn new(queries: &[Query<'_>], dimensions: usize) -> Self {
        let mut points = vec![[0.0; QUERIES]; dimensions];
        for (slot, query) in queries.iter().enumerate() {
            for (axis, &value) in points.iter_mut().zip(query.coordinates) {
                axis[slot] = value;
            }
        }
        Self {
            points,
            reach: [-1.0; QUERIES],
            first_block: [usize::MAX; QUERIES],
        }
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
