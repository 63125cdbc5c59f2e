//! The units of one arm: equal rows once, in blocks for the processor, in a tree of boxes.

use crate::embed::Points;
use crate::problem::Problem;
use crate::random::mix;

/// Points of one block, whose distances are computed together.
pub const LANES: usize = 16;
const NO_CHILD: u32 = u32::MAX;

/// A part of the tree: its blocks, and where its second child is (the first one follows it).
#[derive(Clone, Copy)]
pub struct Node {
    second_child: u32,
    first_block: u32,
    end_block: u32,
}

impl Node {
    /// Its second child, if it is no leaf.
    pub fn second_child(self) -> Option<usize> {
        (self.second_child != NO_CHILD).then_some(self.second_child as usize)
    }

    /// Its blocks.
    pub fn blocks(self) -> std::ops::Range<usize> {
        self.first_block as usize..self.end_block as usize
    }
}

/// The units of one arm.
pub struct Pool {
    /// Coordinates of a point.
    pub dimensions: usize,
    /// Columns with a finite caliper, by their place in the problem.
    pub fenced: Vec<usize>,
    blocks: Vec<f64>,
    /// How many points there are.
    pub points: usize,
    first_member: Vec<u32>,
    members: Vec<u32>,
    /// Of all members of each point.
    pub weight: Vec<f64>,
    /// The tree, a parent before its children.
    pub nodes: Vec<Node>,
    boxes: Vec<f64>,
}

impl Pool {
    /// The rows of one arm. Equal rows become one point if `merged`.
    pub fn new(problem: &Problem, points: &Points, rows: &[usize], merged: bool) -> Self {
        let fenced: Vec<usize> = problem.caliper.as_ref().map_or_else(Vec::new, |caliper| {
            (0..problem.columns)
                .filter(|&column| caliper[column].is_finite())
                .collect()
        });
        let mut groups = if merged {
            equal_rows(problem, rows)
        } else {
            rows.iter().map(|&row| vec![small(row)]).collect()
        };
        let mut builder = Builder {
            problem,
            points,
            fenced: &fenced,
            nodes: Vec::new(),
            boxes: Vec::new(),
        };
        builder.divide(&mut groups, 0);
        let (nodes, boxes) = (builder.nodes, builder.boxes);

        let dimensions = points.dimensions;
        let mut blocks = vec![f64::INFINITY; groups.len().div_ceil(LANES) * LANES * dimensions];
        let mut first_member = vec![0];
        let mut members = Vec::with_capacity(rows.len());
        let mut weight = Vec::with_capacity(groups.len());
        for (position, group) in groups.iter().enumerate() {
            let (block, lane) = (position / LANES, position % LANES);
            for (axis, &value) in points.of(group[0] as usize).iter().enumerate() {
                blocks[(block * dimensions + axis) * LANES + lane] = value;
            }
            members.extend_from_slice(group);
            first_member.push(small(members.len()));
            weight.push(group.iter().map(|&row| problem.weight(row as usize)).sum());
        }
        Self {
            dimensions,
            fenced,
            blocks,
            points: groups.len(),
            first_member,
            members,
            weight,
            nodes,
            boxes,
        }
    }

    /// The rows that are equal to the point, ascending.
    pub fn members(&self, point: usize) -> &[u32] {
        &self.members[self.first_member[point] as usize..self.first_member[point + 1] as usize]
    }

    /// The coordinates of a block, axis after axis.
    pub fn block(&self, block: usize) -> &[f64] {
        let size = LANES * self.dimensions;
        &self.blocks[block * size..(block + 1) * size]
    }

    /// How many blocks there are.
    pub fn block_count(&self) -> usize {
        self.points.div_ceil(LANES)
    }

    /// Low ends, then high ends, of the node's box: first of the coordinates, then of the fenced
    /// columns.
    pub fn bounds(&self, node: usize) -> (&[f64], &[f64]) {
        let size = self.dimensions + self.fenced.len();
        self.boxes[node * 2 * size..(node + 1) * 2 * size].split_at(size)
    }
}

fn small(row: usize) -> u32 {
    u32::try_from(row).expect("the caller has checked that there are fewer than 2^32 rows")
}

/// The rows, each group of equal ones ascending.
fn equal_rows(problem: &Problem, rows: &[usize]) -> Vec<Vec<u32>> {
    let values = |row: usize| &problem.x[row * problem.columns..(row + 1) * problem.columns];
    let mut keyed: Vec<(u64, u32)> = rows
        .iter()
        .map(|&row| {
            // Adding 0 makes a negative zero positive.
            let key = values(row)
                .iter()
                .fold(0, |key: u64, value| mix(key ^ (value + 0.0).to_bits()));
            (key, small(row))
        })
        .collect();
    keyed.sort_unstable();
    keyed
        .chunk_by(|left, right| {
            left.0 == right.0 && values(left.1 as usize) == values(right.1 as usize)
        })
        .map(|group| group.iter().map(|&(_, row)| row).collect())
        .collect()
}

struct Builder<'a> {
    problem: &'a Problem,
    points: &'a Points,
    fenced: &'a [usize],
    nodes: Vec<Node>,
    boxes: Vec<f64>,
}

impl Builder<'_> {
    /// Orders the groups so that each node has whole blocks of them.
    fn divide(&mut self, groups: &mut [Vec<u32>], first_block: usize) {
        let node = self.nodes.len();
        let end_block = first_block + groups.len().div_ceil(LANES);
        self.nodes.push(Node {
            second_child: NO_CHILD,
            first_block: small(first_block),
            end_block: small(end_block),
        });
        let widest = self.measure(groups);
        if groups.len() <= LANES {
            return;
        }
        let middle = (groups.len() / 2).div_ceil(LANES) * LANES;
        let value = |group: &Vec<u32>| self.points.of(group[0] as usize)[widest];
        groups.select_nth_unstable_by(middle, |left, right| {
            value(left)
                .total_cmp(&value(right))
                .then(left[0].cmp(&right[0]))
        });
        let (low, high) = groups.split_at_mut(middle);
        self.divide(low, first_block);
        self.nodes[node].second_child = small(self.nodes.len());
        self.divide(high, first_block + middle / LANES);
    }

    /// Adds the box of the groups; answers the coordinate in which it is widest.
    fn measure(&mut self, groups: &[Vec<u32>]) -> usize {
        let dimensions = self.points.dimensions;
        let size = dimensions + self.fenced.len();
        let mut low = vec![f64::INFINITY; size];
        let mut high = vec![f64::NEG_INFINITY; size];
        for group in groups {
            let row = group[0] as usize;
            let coordinates = self.points.of(row).iter().copied();
            let columns = self
                .fenced
                .iter()
                .map(|column| self.problem.x[row * self.problem.columns + column]);
            for (axis, value) in coordinates.chain(columns).enumerate() {
                low[axis] = low[axis].min(value);
                high[axis] = high[axis].max(value);
            }
        }
        let widest = (0..dimensions)
            .max_by(|&left, &right| (high[left] - low[left]).total_cmp(&(high[right] - low[right])))
            .unwrap_or(0);
        self.boxes.extend(low);
        self.boxes.extend(high);
        widest
    }
}
