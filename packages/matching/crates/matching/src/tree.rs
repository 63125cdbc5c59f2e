//! A tree of boxes over blocks of points. A node has up to sixteen children, so that the distances
//! to the boxes of all children are computed together.

use crate::instructions::LANES;
use crate::problem::to_u32;

/// A child of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// Another node, by its index.
    Node(usize),
    /// A block of points, by its index.
    Block(usize),
}

/// Bit that marks a child as a block.
const BLOCK_BIT: u32 = 1 << 31;

/// The points from which a tree is built.
pub struct TreeInput<'a> {
    /// For each point its coordinates, then its values in the columns with a caliper.
    pub values: &'a [f64],
    pub dimensions: usize,
    /// Largest difference of two matched points in each column with a caliper.
    pub calipers: &'a [f64],
}

impl TreeInput<'_> {
    /// Returns the number of values of a point.
    pub fn width(&self) -> usize {
        self.dimensions + self.calipers.len()
    }

    fn values_of(&self, point: u32) -> &[f64] {
        let width = self.width();
        &self.values[point as usize * width..(point as usize + 1) * width]
    }
}

/// The tree. A parent comes before its children.
#[derive(Clone)]
pub struct Tree {
    /// Number of axes of a box: the coordinates, then the columns with a caliper.
    width: usize,
    /// Box of each node, axis after axis: sixteen low ends, then sixteen high ends.
    boxes: Vec<f64>,
    /// Children of each node; a lane without a child has an infinite box.
    children: Vec<[u32; LANES]>,
    /// Number of children of each node that still have points.
    open_children: Vec<u8>,
    /// Parent of each node, and the lane of the node in its parent.
    parent_of_node: Vec<(u32, u8)>,
    /// Parent of each block, and the lane of the block in its parent.
    parent_of_block: Vec<(u32, u8)>,
}

impl Tree {
    /// Returns an empty tree, for few points. A search without a tree examines every block.
    pub fn empty(input: &TreeInput<'_>) -> Self {
        Self {
            width: input.width(),
            boxes: Vec::new(),
            children: Vec::new(),
            open_children: Vec::new(),
            parent_of_node: Vec::new(),
            parent_of_block: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// Orders the points so that each block has near points, and builds the tree over the blocks.
    pub fn new(input: &TreeInput<'_>, order: &mut [u32]) -> Self {
        let mut tree = Self::empty(input);
        tree.parent_of_block = vec![(0, 0); order.len().div_ceil(LANES)];
        let mut keys = Vec::with_capacity(order.len());
        tree.grow(input, order, 0, (0, 0), &mut keys);
        tree
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.children.len()
    }

    /// Returns the number of children of a node, if no block is closed.
    pub fn child_count(&self, node: usize) -> usize {
        usize::from(self.open_children[node])
    }

    pub fn child(&self, node: usize, lane: usize) -> Child {
        let child = self.children[node][lane];
        if child & BLOCK_BIT == 0 {
            Child::Node(child as usize)
        } else {
            Child::Block((child & !BLOCK_BIT) as usize)
        }
    }

    /// Returns the boxes of a node's children: for each axis sixteen low ends, sixteen high ends.
    pub fn boxes(&self, node: usize) -> &[f64] {
        let size = self.width * 2 * LANES;
        &self.boxes[node * size..(node + 1) * size]
    }

    /// Excludes a block without points from all later searches.
    pub fn close(&mut self, block: usize) {
        if self.is_empty() {
            return;
        }
        let (mut node, mut lane) = self.parent_of_block[block];
        loop {
            let index = node as usize;
            // A box with its low end at infinity is infinitely far from every point.
            self.boxes[index * self.width * 2 * LANES + usize::from(lane)] = f64::INFINITY;
            self.open_children[index] -= 1;
            if self.open_children[index] > 0 || index == 0 {
                return;
            }
            (node, lane) = self.parent_of_node[index];
        }
    }

    /// Adds a node over these points, and all nodes below it. `parent` is the parent with the lane
    /// of the node, and `keys` is memory for sorting.
    fn grow(
        &mut self,
        input: &TreeInput<'_>,
        order: &mut [u32],
        first_block: usize,
        parent: (u32, u8),
        keys: &mut Vec<(f64, u32)>,
    ) {
        let node = self.children.len();
        let mut sizes = Vec::with_capacity(LANES);
        divide(input, order, LANES, keys, &mut sizes);
        self.children.push([BLOCK_BIT; LANES]);
        self.open_children
            .push(u8::try_from(sizes.len()).expect("sixteen children"));
        self.parent_of_node.push(parent);
        let first_box = self.boxes.len();
        for _ in 0..self.width {
            self.boxes.extend([f64::INFINITY; LANES]);
            self.boxes.extend([f64::NEG_INFINITY; LANES]);
        }
        let (mut rest, mut block) = (order, first_block);
        for (lane, size) in (0..).zip(sizes) {
            let (child_points, later_points) = rest.split_at_mut(size);
            rest = later_points;
            let index = usize::from(lane);
            for (axis, (low, high)) in ranges_of(input, child_points).into_iter().enumerate() {
                self.boxes[first_box + 2 * axis * LANES + index] = low;
                self.boxes[first_box + (2 * axis + 1) * LANES + index] = high;
            }
            let parent_of_child = (to_u32(node), lane);
            if size <= LANES {
                self.children[node][index] = to_u32(block) | BLOCK_BIT;
                self.parent_of_block[block] = parent_of_child;
            } else {
                self.children[node][index] = to_u32(self.children.len());
                self.grow(input, child_points, block, parent_of_child, keys);
            }
            block += size.div_ceil(LANES);
        }
    }
}

/// Divides the points into at most `max_groups` groups of whole blocks, and appends their sizes.
fn divide(
    input: &TreeInput<'_>,
    order: &mut [u32],
    max_groups: usize,
    keys: &mut Vec<(f64, u32)>,
    sizes: &mut Vec<usize>,
) {
    let blocks = order.len().div_ceil(LANES);
    let groups = max_groups.min(blocks);
    if groups <= 1 {
        sizes.push(order.len());
        return;
    }
    let axis = axis_to_divide(input, order);
    let middle = blocks * (groups / 2) / groups * LANES;
    keys.clear();
    let key = |&point: &u32| (input.values_of(point)[axis], point);
    keys.extend(order.iter().map(key));
    keys.select_nth_unstable_by(middle, |left, right| {
        left.0.total_cmp(&right.0).then(left.1.cmp(&right.1))
    });
    for (point, key) in order.iter_mut().zip(keys.iter()) {
        *point = key.1;
    }
    let (low, high) = order.split_at_mut(middle);
    divide(input, low, groups / 2, keys, sizes);
    divide(input, high, groups - groups / 2, keys, sizes);
}

/// Returns the axis along which to divide the points. If columns are over 2 calipers wide, the axis
/// is the widest of these in calipers. Otherwise, it is the widest coordinate.
fn axis_to_divide(input: &TreeInput<'_>, order: &[u32]) -> usize {
    let ranges = ranges_of(input, order);
    let extent = |axis: usize| ranges[axis].1 - ranges[axis].0;
    let widest = |axes: std::ops::Range<usize>, measure: &dyn Fn(usize) -> f64| {
        axes.max_by(|&left, &right| measure(left).total_cmp(&measure(right)))
    };
    let extent_in_calipers = |axis: usize| {
        let extent = extent(axis);
        if extent > 0.0 {
            extent / input.calipers[axis - input.dimensions]
        } else {
            0.0
        }
    };
    widest(input.dimensions..input.width(), &extent_in_calipers)
        .filter(|&axis| extent_in_calipers(axis) > 2.0)
        .or_else(|| widest(0..input.dimensions, &extent))
        .unwrap_or(0)
}

fn ranges_of(input: &TreeInput<'_>, points: &[u32]) -> Vec<(f64, f64)> {
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); input.width()];
    for &point in points {
        for ((low, high), &value) in ranges.iter_mut().zip(input.values_of(point)) {
            *low = low.min(value);
            *high = high.max(value);
        }
    }
    ranges
}
