//! A tree of boxes over blocks of points: sixteen children each, so that the distances to all of
//! their boxes are computed together.

use crate::instructions::LANES;
use crate::problem::small;

/// A part of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// A node.
    Node(usize),
    /// A block of points.
    Block(usize),
}

/// Marks a block among children.
const IS_BLOCK: u32 = 1 << 31;

/// The points of an arm, and the columns that a caliper fences, as the tree needs them.
pub struct Layout<'a> {
    /// Coordinates, and then values in the fenced columns, of each point that is placed.
    pub values: &'a [f64],
    /// Number of coordinates of a point.
    pub dimensions: usize,
    /// Largest difference of two points in each of the fenced columns.
    pub fence: &'a [f64],
}

impl Layout<'_> {
    /// Values of each point.
    pub fn width(&self) -> usize {
        self.dimensions + self.fence.len()
    }

    fn of(&self, point: u32) -> &[f64] {
        let width = self.width();
        &self.values[point as usize * width..(point as usize + 1) * width]
    }
}

/// The tree. A parent comes before its children.
#[derive(Clone)]
pub struct Tree {
    width: usize,
    /// Box of each node, axis after axis: sixteen low ends, then sixteen high ends.
    boxes: Vec<f64>,
    /// Children of each node; a lane without a child has an infinite box.
    children: Vec<[u32; LANES]>,
    /// Number of each node's children that are not closed.
    open: Vec<u8>,
    /// Node and lane in which each node, and each block, hangs.
    above_node: Vec<(u32, u8)>,
    above_block: Vec<(u32, u8)>,
}

impl Tree {
    /// No tree, for points too few to be worth it: every search examines every block.
    pub fn flat(layout: &Layout<'_>) -> Self {
        Self {
            width: layout.width(),
            boxes: Vec::new(),
            children: Vec::new(),
            open: Vec::new(),
            above_node: Vec::new(),
            above_block: Vec::new(),
        }
    }

    /// Whether there is no tree.
    pub fn is_flat(&self) -> bool {
        self.children.is_empty()
    }

    /// Orders the points so that the sixteen points of a block are close together, and builds the
    /// tree over the blocks.
    pub fn new(layout: &Layout<'_>, order: &mut [u32]) -> Self {
        let mut tree = Self::flat(layout);
        tree.above_block = vec![(0, 0); order.len().div_ceil(LANES)];
        let mut keys = Vec::with_capacity(order.len());
        tree.grow(layout, order, 0, (0, 0), &mut keys);
        tree
    }

    /// The child in the lane of the node.
    pub fn child(&self, node: usize, lane: usize) -> Child {
        let child = self.children[node][lane];
        if child & IS_BLOCK == 0 {
            Child::Node(child as usize)
        } else {
            Child::Block((child & !IS_BLOCK) as usize)
        }
    }

    /// The boxes of the node's children, axis after axis: sixteen low ends, then sixteen high ends.
    pub fn boxes(&self, node: usize) -> &[f64] {
        let size = self.width * 2 * LANES;
        &self.boxes[node * size..(node + 1) * size]
    }

    /// Shuts a block, of which no point is left, out of every search.
    pub fn close(&mut self, block: usize) {
        if self.is_flat() {
            return;
        }
        let (mut node, mut lane) = self.above_block[block];
        loop {
            let place = node as usize;
            // A low end at infinity: infinitely far.
            self.boxes[place * self.width * 2 * LANES + usize::from(lane)] = f64::INFINITY;
            self.open[place] -= 1;
            if self.open[place] > 0 || place == 0 {
                return;
            }
            (node, lane) = self.above_node[place];
        }
    }

    fn grow(
        &mut self,
        layout: &Layout<'_>,
        order: &mut [u32],
        first_block: usize,
        above: (u32, u8),
        keys: &mut Vec<(f64, u32)>,
    ) {
        let node = self.children.len();
        let mut sizes = Vec::with_capacity(LANES);
        divide(layout, order, LANES, keys, &mut sizes);
        self.children.push([IS_BLOCK; LANES]);
        self.open
            .push(u8::try_from(sizes.len()).expect("sixteen children"));
        self.above_node.push(above);
        let boxes = self.boxes.len();
        for _ in 0..self.width {
            self.boxes.extend([f64::INFINITY; LANES]);
            self.boxes.extend([f64::NEG_INFINITY; LANES]);
        }
        let (mut rest, mut block) = (order, first_block);
        for (lane, size) in (0..).zip(sizes) {
            let (part, others) = rest.split_at_mut(size);
            rest = others;
            let place = usize::from(lane);
            for (axis, (low, high)) in ends(layout, part).into_iter().enumerate() {
                self.boxes[boxes + 2 * axis * LANES + place] = low;
                self.boxes[boxes + (2 * axis + 1) * LANES + place] = high;
            }
            let parent = (small(node), lane);
            if size <= LANES {
                self.children[node][place] = small(block) | IS_BLOCK;
                self.above_block[block] = parent;
            } else {
                self.children[node][place] = small(self.children.len());
                self.grow(layout, part, block, parent, keys);
            }
            block += size.div_ceil(LANES);
        }
    }
}

/// Divides the points into at most `parts` parts of whole blocks; returns their sizes.
fn divide(
    layout: &Layout<'_>,
    order: &mut [u32],
    parts: usize,
    keys: &mut Vec<(f64, u32)>,
    sizes: &mut Vec<usize>,
) {
    let blocks = order.len().div_ceil(LANES);
    let parts = parts.min(blocks);
    if parts <= 1 {
        sizes.push(order.len());
        return;
    }
    let axis = axis_to_divide(layout, order);
    let middle = blocks * (parts / 2) / parts * LANES;
    keys.clear();
    keys.extend(order.iter().map(|&point| (layout.of(point)[axis], point)));
    keys.select_nth_unstable_by(middle, |left, right| {
        left.0.total_cmp(&right.0).then(left.1.cmp(&right.1))
    });
    for (point, key) in order.iter_mut().zip(keys.iter()) {
        *point = key.1;
    }
    let (low, high) = order.split_at_mut(middle);
    divide(layout, low, parts / 2, keys, sizes);
    divide(layout, high, parts - parts / 2, keys, sizes);
}

/// A fenced column that is much wider than its caliper, which leaves out most of the points; else
/// the coordinate in which the points are furthest apart.
fn axis_to_divide(layout: &Layout<'_>, order: &[u32]) -> usize {
    let ends = ends(layout, order);
    let extent = |axis: usize| ends[axis].1 - ends[axis].0;
    let widest = |axes: std::ops::Range<usize>, measure: &dyn Fn(usize) -> f64| {
        axes.max_by(|&left, &right| measure(left).total_cmp(&measure(right)))
    };
    let calipers = |axis: usize| {
        let extent = extent(axis);
        if extent > 0.0 {
            extent / layout.fence[axis - layout.dimensions]
        } else {
            0.0
        }
    };
    widest(layout.dimensions..layout.width(), &calipers)
        .filter(|&axis| calipers(axis) > 2.0)
        .or_else(|| widest(0..layout.dimensions, &extent))
        .unwrap_or(0)
}

/// Low and high end of the points on each axis.
fn ends(layout: &Layout<'_>, points: &[u32]) -> Vec<(f64, f64)> {
    let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); layout.width()];
    for &point in points {
        for ((low, high), &value) in ends.iter_mut().zip(layout.of(point)) {
            *low = low.min(value);
            *high = high.max(value);
        }
    }
    ends
}
