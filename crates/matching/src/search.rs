//! The nearest neighbours of one point, with all that tie: every distance, or a tree of boxes.
//!
//! Both ways compute a distance by the same instructions, so they find the same.

use std::collections::BinaryHeap;

use crate::pool::{LANES, Pool};

/// Bounds are lowered by this factor: their rounding must not hide a neighbour.
const CAUTION: f64 = 1.0 - 1e-12;

/// Whose neighbours are wanted, and how many.
pub struct Query<'a> {
    /// The coordinates.
    pub point: &'a [f64],
    /// The values in the fenced columns, and how far a neighbour's may lie from them.
    pub fence: &'a [(f64, f64)],
    /// The nearest of this weight in all are wanted (how many, if all weigh 1).
    pub needed: f64,
    /// What is added to the squared distance of the last of them, for ties.
    pub slack: f64,
    /// What the point of the pool weighs; `None` if it is not admitted.
    pub admitted: &'a dyn Fn(usize) -> Option<f64>,
    /// Admitted points with a squared distance of their own.
    pub given: &'a [(usize, f64)],
    /// Whether the tree is used.
    pub by_tree: bool,
}

/// What is found, and the room for finding it.
#[derive(Default)]
pub struct Found {
    /// Neighbours: squared distance and point.
    pub neighbours: Vec<(f64, u32)>,
    /// The squared distance of the last that was needed.
    pub last: f64,
    /// Whether there were as many as needed.
    pub enough: bool,
    /// How many blocks were looked into.
    pub blocks: usize,
    nearest: BinaryHeap<Near>,
    weight: f64,
    needed: f64,
    slack: f64,
    waiting: Vec<(f64, usize)>,
}

#[derive(PartialEq)]
struct Near {
    squared: f64,
    weight: f64,
}

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.squared
            .total_cmp(&other.squared)
            .then(self.weight.total_cmp(&other.weight))
    }
}

impl Found {
    /// Finds the neighbours; what was found before is forgotten.
    pub fn search(&mut self, pool: &Pool, query: &Query<'_>) {
        self.neighbours.clear();
        self.nearest.clear();
        self.waiting.clear();
        self.weight = 0.0;
        self.blocks = 0;
        self.needed = query.needed;
        self.slack = query.slack;
        self.last = f64::INFINITY;
        for &(point, squared) in query.given {
            if let Some(weight) = (query.admitted)(point) {
                self.take(squared, point, weight);
            }
        }
        self.look(pool, query);
        self.enough = self.weight >= self.needed;
        if !self.enough {
            self.last = self
                .nearest
                .peek()
                .map_or(f64::INFINITY, |near| near.squared);
        }
        let reach = self.last + self.slack;
        self.neighbours.retain(|&(squared, _)| squared <= reach);
        // Sums over them must not depend on the way in which they were found.
        self.neighbours.sort_unstable_by_key(|&(_, point)| point);
    }

    fn take(&mut self, squared: f64, point: usize, weight: f64) {
        let point = u32::try_from(point).expect("fewer points than 2^32");
        self.neighbours.push((squared, point));
        if squared >= self.last {
            return;
        }
        self.nearest.push(Near { squared, weight });
        self.weight += weight;
        while let Some(furthest) = self.nearest.peek() {
            if self.weight - furthest.weight < self.needed {
                break;
            }
            self.weight -= furthest.weight;
            self.nearest.pop();
        }
        if self.weight >= self.needed {
            self.last = self
                .nearest
                .peek()
                .map_or(f64::INFINITY, |near| near.squared);
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn look(&mut self, pool: &Pool, query: &Query<'_>) {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has just said that it knows AVX2 and FMA.
            unsafe { self.look_with_avx2(pool, query) }
        } else {
            self.look_everywhere::<false>(pool, query);
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn look(&mut self, pool: &Pool, query: &Query<'_>) {
        self.look_everywhere::<false>(pool, query);
    }

    /// # Safety
    /// The processor must know AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn look_with_avx2(&mut self, pool: &Pool, query: &Query<'_>) {
        self.look_everywhere::<true>(pool, query);
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    fn look_everywhere<const FUSED: bool>(&mut self, pool: &Pool, query: &Query<'_>) {
        if !query.by_tree {
            for block in 0..pool.block_count() {
                self.look_into::<FUSED>(pool, query, block);
            }
            return;
        }
        self.waiting.push((0.0, 0));
        while let Some((bound, index)) = self.waiting.pop() {
            if bound > self.last + self.slack {
                continue;
            }
            let node = pool.nodes[index];
            let Some(second) = node.second_child() else {
                for block in node.blocks() {
                    self.look_into::<FUSED>(pool, query, block);
                }
                continue;
            };
            let left = (bound_of(pool, query, index + 1), index + 1);
            let right = (bound_of(pool, query, second), second);
            let (near, far) = if left.0 <= right.0 {
                (left, right)
            } else {
                (right, left)
            };
            for child in [far, near] {
                if child.0 <= self.last + self.slack && child.0 < f64::INFINITY {
                    self.waiting.push(child);
                }
            }
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
    fn look_into<const FUSED: bool>(&mut self, pool: &Pool, query: &Query<'_>, block: usize) {
        self.blocks += 1;
        let mut squared = [0.0; LANES];
        for (axis, &centre) in pool.block(block).chunks_exact(LANES).zip(query.point) {
            for lane in 0..LANES {
                let difference = axis[lane] - centre;
                squared[lane] = if FUSED {
                    difference.mul_add(difference, squared[lane])
                } else {
                    squared[lane] + difference * difference
                };
            }
        }
        let reach = self.last + self.slack;
        let mut any = false;
        for &distance in &squared {
            any |= distance <= reach;
        }
        if !any {
            return;
        }
        for (lane, &distance) in squared.iter().enumerate() {
            let point = block * LANES + lane;
            if point >= pool.points || distance > self.last + self.slack {
                continue;
            }
            if query.given.iter().any(|&(other, _)| other == point) {
                continue;
            }
            if let Some(weight) = (query.admitted)(point) {
                self.take(distance, point, weight);
            }
        }
    }
}

/// No point of the node is nearer; infinite if the fence shuts all of them out.
#[inline(always)]
#[allow(clippy::inline_always)] // Or it would be compiled without the caller's instructions.
fn bound_of(pool: &Pool, query: &Query<'_>, node: usize) -> f64 {
    let (low, high) = pool.bounds(node);
    let (near_low, fenced_low) = low.split_at(query.point.len());
    let (near_high, fenced_high) = high.split_at(query.point.len());
    for ((low, high), (value, distance)) in fenced_low.iter().zip(fenced_high).zip(query.fence) {
        if low - value > *distance || value - high > *distance {
            return f64::INFINITY;
        }
    }
    let mut squared = 0.0;
    for ((low, high), value) in near_low.iter().zip(near_high).zip(query.point) {
        let outside = (low - value).max(value - high).max(0.0);
        squared += outside * outside;
    }
    squared * CAUTION
}
