//! Finds pairs of two arms that cost less than their prices: distance < price + price.
//!
//! The points of the second arm are in a tree of boxes. Each node has the highest price below it, so
//! that a search skips boxes that are too far for any price in them.

use std::collections::BinaryHeap;

use crate::instructions::{Instructions, LANES, Wide, WidePortable};
#[cfg(target_arch = "x86_64")]
use crate::instructions::{WideAvx2, WideAvx512};
use crate::parallel::{Progress, parallel_map};
use crate::problem::to_u32;
use crate::random::hash;
use crate::tree::{Child, Tree, TreeInput};

/// Number of units that a thread takes from the work list together.
const CHUNK: usize = 64;
/// A search of more than this share of the blocks starts again without the tree, which is then faster.
const MAX_TREE_SHARE: f64 = 1.0 / 32.0;
/// Factor that enlarges a limit, so that rounding hides no pair.
const MARGIN: f64 = 1.0 + 1e-12;

/// The units of an arm.
pub struct PricedUnits<'a> {
    /// Coordinates, unit after unit.
    pub points: &'a [f64],
    /// Values in the columns with a caliper, unit after unit.
    pub limited: &'a [f64],
    /// Price of each unit, in the unit of the distances.
    pub prices: &'a [f64],
    /// For each unit, the distance below which all its pairs are known.
    pub radii: &'a [f64],
}

/// Two arms with prices.
pub struct CheapSearch<'a> {
    /// Number of coordinates of a point.
    pub dimensions: usize,
    /// Largest difference of a pair in each column with a caliper.
    pub calipers: &'a [f64],
    /// The arm whose units search.
    pub first: PricedUnits<'a>,
    /// The arm that is searched.
    pub second: PricedUnits<'a>,
    /// For each unit of the first arm, the largest number of its pairs.
    pub limits: &'a [usize],
    /// Largest distance of a pair.
    pub max_distance: f64,
    /// Number of threads; 0 means one for each core.
    pub threads: usize,
}

/// The second arm, arranged for a search.
struct Targets {
    tree: Tree,
    /// Unit of each place in the blocks.
    order: Vec<u32>,
    /// Coordinates, block after block: sixteen numbers for each axis.
    blocks: Vec<f64>,
    /// Price of each place in the blocks.
    prices: Vec<f64>,
    /// Highest price, and highest price minus radius, of each block and of each node.
    block_tops: Vec<Top>,
    node_tops: Vec<Top>,
}

/// The highest price, and the highest excess of a price over a radius.
#[derive(Clone, Copy)]
struct Top {
    price: f64,
    excess: f64,
}

impl Top {
    const LOWEST: Self = Self {
        price: f64::NEG_INFINITY,
        excess: f64::NEG_INFINITY,
    };

    fn join(&mut self, other: Self) {
        self.price = self.price.max(other.price);
        self.excess = self.excess.max(other.excess);
    }
}

/// A cheap pair, ordered by its distance minus its prices.
#[derive(Clone, Copy, PartialEq)]
struct Cheap {
    reduced: f64,
    /// A hash of the pair. So equal units prefer different targets among equal ones.
    tie_order: u64,
    target: u32,
}

impl Eq for Cheap {}

impl PartialOrd for Cheap {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cheap {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.reduced
            .total_cmp(&other.reduced)
            .then(self.tie_order.cmp(&other.tie_order))
            .then(self.target.cmp(&other.target))
    }
}

impl CheapSearch<'_> {
    /// Returns the cheap pairs that may be unknown, as first and second units; `None` if `progress`
    /// stops the search. A unit keeps the pairs with the smallest distance minus prices.
    ///
    /// # Panics
    /// If the arrays have lengths that do not fit each other.
    #[must_use]
    pub fn pairs(&self, progress: &Progress<'_>) -> Option<Vec<(u32, u32)>> {
        let count = self.first.prices.len();
        if self.second.prices.is_empty() {
            return Some(Vec::new());
        }
        let targets = self.targets();
        let instructions = Instructions::best();
        let chunks = parallel_map(self.threads, count, CHUNK, progress, |range| {
            let mut pairs = Vec::new();
            for unit in range {
                let found = match instructions {
                    // SAFETY: `best` has checked that the processor has these instructions.
                    #[cfg(target_arch = "x86_64")]
                    Instructions::Avx512 => unsafe { self.search_with_avx512(&targets, unit) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Instructions::Avx2 => unsafe { self.search_with_avx2(&targets, unit) },
                    // SAFETY: every processor has the portable instructions.
                    _ => unsafe { self.search::<WidePortable>(&targets, unit) },
                };
                let mut found: Vec<u32> = found.into_iter().map(|cheap| cheap.target).collect();
                found.sort_unstable();
                pairs.extend(found.into_iter().map(|target| (to_u32(unit), target)));
            }
            pairs
        })?;
        Some(chunks.concat())
    }

    fn targets(&self) -> Targets {
        let (dimensions, width) = (self.dimensions, self.calipers.len());
        let count = self.second.prices.len();
        assert_eq!(self.second.points.len(), count * dimensions);
        assert_eq!(self.second.limited.len(), count * width);
        // The price is a further axis of the boxes, so that the points of a box have similar prices.
        let mut values = Vec::with_capacity(count * (dimensions + 1 + width));
        for unit in 0..count {
            values.extend(&self.second.points[unit * dimensions..(unit + 1) * dimensions]);
            values.push(self.second.prices[unit]);
            values.extend(&self.second.limited[unit * width..(unit + 1) * width]);
        }
        let input = TreeInput {
            values: &values,
            dimensions: dimensions + 1,
            calipers: self.calipers,
        };
        let mut order: Vec<u32> = (0..to_u32(count)).collect();
        let tree = Tree::new(&input, &mut order);
        let block_count = count.div_ceil(LANES);
        let mut blocks = vec![f64::INFINITY; block_count * LANES * dimensions];
        let mut block_tops = vec![Top::LOWEST; block_count];
        for (place, &unit) in order.iter().enumerate() {
            let (block, lane, unit) = (place / LANES, place % LANES, unit as usize);
            for axis in 0..dimensions {
                blocks[(block * dimensions + axis) * LANES + lane] =
                    self.second.points[unit * dimensions + axis];
            }
            let price = self.second.prices[unit];
            block_tops[block].join(Top {
                price,
                excess: price - self.second.radii[unit],
            });
        }
        let mut node_tops = vec![Top::LOWEST; tree.node_count()];
        // A parent comes before its children.
        for node in (0..tree.node_count()).rev() {
            for lane in 0..tree.child_count(node) {
                let top = match tree.child(node, lane) {
                    Child::Block(block) => block_tops[block],
                    Child::Node(child) => node_tops[child],
                };
                node_tops[node].join(top);
            }
        }
        Targets {
            tree,
            prices: order
                .iter()
                .map(|&unit| self.second.prices[unit as usize])
                .collect(),
            order,
            blocks,
            block_tops,
            node_tops,
        }
    }

    /// # Safety
    /// The processor must have AVX-512F, AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx2,fma")]
    unsafe fn search_with_avx512(&self, targets: &Targets, unit: usize) -> BinaryHeap<Cheap> {
        // SAFETY: by the caller.
        unsafe { self.search::<WideAvx512>(targets, unit) }
    }

    /// # Safety
    /// The processor must have AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn search_with_avx2(&self, targets: &Targets, unit: usize) -> BinaryHeap<Cheap> {
        // SAFETY: by the caller.
        unsafe { self.search::<WideAvx2>(targets, unit) }
    }

    /// Returns the cheap pairs of a unit, at most as many as its limit.
    ///
    /// # Safety
    /// The processor must have the instructions.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn search<W: Wide>(&self, targets: &Targets, unit: usize) -> BinaryHeap<Cheap> {
        let mut found = BinaryHeap::new();
        let max_visits = (targets.block_tops.len() as f64 * MAX_TREE_SHARE).ceil();
        let mut visits = 0.0;
        let mut pending = vec![(0.0, Child::Node(0), targets.node_tops[0])];
        while let Some((bound, child, top)) = pending.pop() {
            let Some(reach) = self
                .reach(unit, top, &found)
                .filter(|&reach| bound <= reach)
            else {
                continue;
            };
            visits += 1.0;
            if visits > max_visits {
                // SAFETY: by the caller.
                return unsafe { self.search_all_blocks::<W>(targets, unit) };
            }
            let node = match child {
                Child::Block(block) => {
                    // SAFETY: by the caller.
                    unsafe { self.search_block::<W>(targets, unit, block, reach, &mut found) };
                    continue;
                }
                Child::Node(node) => node,
            };
            // SAFETY: by the caller.
            let (bounds, is_within) = unsafe { self.bounds::<W>(targets, unit, node) };
            let start = pending.len();
            let children = bounds.into_iter().take(targets.tree.child_count(node));
            for (lane, bound) in children.enumerate() {
                let child = targets.tree.child(node, lane);
                let top = match child {
                    Child::Block(block) => targets.block_tops[block],
                    Child::Node(node) => targets.node_tops[node],
                };
                let reach = self.reach(unit, top, &found);
                let is_near = reach.is_some_and(|reach| bound <= reach);
                if is_within >> lane & 1 == 1 && is_near {
                    pending.push((bound, child, top));
                }
            }
            // The nearest box comes last, so that it is searched next.
            pending[start..].sort_unstable_by(|left, right| right.0.total_cmp(&left.0));
        }
        found
    }

    /// Returns the cheap pairs of a unit without the tree.
    ///
    /// # Safety
    /// The processor must have the instructions.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn search_all_blocks<W: Wide>(
        &self,
        targets: &Targets,
        unit: usize,
    ) -> BinaryHeap<Cheap> {
        let mut found = BinaryHeap::new();
        for (block, &top) in targets.block_tops.iter().enumerate() {
            if let Some(reach) = self.reach(unit, top, &found) {
                // SAFETY: by the caller.
                unsafe { self.search_block::<W>(targets, unit, block, reach, &mut found) };
            }
        }
        found
    }

    /// Returns the largest squared distance at which a pair with a price below `top` is cheap and
    /// may be unknown; `None` if there is none.
    fn reach(&self, unit: usize, top: Top, found: &BinaryHeap<Cheap>) -> Option<f64> {
        let price = self.first.prices[unit];
        let may_be_unknown = price + top.price > self.first.radii[unit] && price + top.excess > 0.0;
        let reach = (price + top.price + worst(found, self.limits[unit])).min(self.max_distance);
        (may_be_unknown && reach > 0.0).then_some(reach * reach * MARGIN)
    }

    /// Returns lower bounds of the squared distances to the boxes of a node's children, and a bit
    /// for each box, set if the box is within the calipers.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn bounds<W: Wide>(
        &self,
        targets: &Targets,
        unit: usize,
        node: usize,
    ) -> ([f64; LANES], u32) {
        let boxes = targets.tree.boxes(node);
        let (near, limited) = boxes.split_at(2 * LANES * (self.dimensions + 1));
        let point = &self.first.points[unit * self.dimensions..(unit + 1) * self.dimensions];
        let width = self.calipers.len();
        let values = &self.first.limited[unit * width..(unit + 1) * width];
        let mut bounds = [0.0; LANES];
        let mut is_within = u32::MAX;
        // SAFETY: by the caller.
        unsafe {
            let zero = W::splat(0.0);
            let outside = |ends: &[f64], value: f64| {
                let value = W::splat(value);
                let below = W::load(ends).minus(value);
                below.maximum(value.minus(W::load(&ends[LANES..])))
            };
            let mut squared = zero;
            for (ends, &value) in near.chunks_exact(2 * LANES).zip(point) {
                squared = outside(ends, value).maximum(zero).squared_plus(squared);
            }
            squared.store(&mut bounds);
            let ends = limited.chunks_exact(2 * LANES);
            for ((ends, &value), &caliper) in ends.zip(values).zip(self.calipers) {
                is_within &= outside(ends, value).at_most(W::splat(caliper));
            }
        }
        (bounds, is_within)
    }

    /// Adds the cheap pairs of a unit with the points of a block.
    #[inline(always)]
    #[allow(clippy::inline_always)] // Only inlined code uses the caller's instructions.
    unsafe fn search_block<W: Wide>(
        &self,
        targets: &Targets,
        unit: usize,
        block: usize,
        reach: f64,
        found: &mut BinaryHeap<Cheap>,
    ) {
        let size = LANES * self.dimensions;
        let axes = targets.blocks[block * size..(block + 1) * size].chunks_exact(LANES);
        let point = &self.first.points[unit * self.dimensions..];
        let mut distances = [0.0; LANES];
        // SAFETY: by the caller.
        let mut near = unsafe {
            let mut squared = W::splat(0.0);
            for (axis, &centre) in axes.zip(point) {
                squared = W::load(axis).minus(W::splat(centre)).squared_plus(squared);
            }
            squared.store(&mut distances);
            squared.at_most(W::splat(reach))
        };
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let place = block * LANES + lane;
            let reach = self.first.prices[unit] + targets.prices[place];
            if reach > 0.0 && distances[lane] <= reach * reach * MARGIN {
                self.add(unit, targets.order[place], distances[lane].sqrt(), found);
            }
        }
    }

    /// Adds a pair if it is cheap, admissible and may be unknown.
    fn add(&self, unit: usize, target: u32, distance: f64, found: &mut BinaryHeap<Cheap>) {
        let other = target as usize;
        let limit = self.limits[unit];
        let reduced = distance - self.first.prices[unit] - self.second.prices[other];
        let known = self.first.radii[unit].max(self.second.radii[other]);
        let is_outside = distance * MARGIN < known || distance > self.max_distance * MARGIN;
        if reduced > worst(found, limit) || is_outside || limit == 0 {
            return;
        }
        let width = self.calipers.len();
        let values = self.first.limited[unit * width..(unit + 1) * width].iter();
        let others = &self.second.limited[other * width..(other + 1) * width];
        let is_admissible = values
            .zip(others)
            .zip(self.calipers)
            .all(|((value, other), &caliper)| (value - other).abs() <= caliper);
        if !is_admissible {
            return;
        }
        found.push(Cheap {
            reduced,
            tie_order: hash(u64::from(to_u32(unit)) << 32 | u64::from(target)),
            target,
        });
        if found.len() > limit {
            found.pop();
        }
    }
}

/// The largest distance minus prices of a pair that is still wanted.
fn worst(found: &BinaryHeap<Cheap>, limit: usize) -> f64 {
    match found.peek() {
        Some(cheap) if found.len() >= limit => cheap.reduced.min(0.0),
        _ => 0.0,
    }
}

#[cfg(test)]
#[path = "cheap_tests.rs"]
mod tests;
