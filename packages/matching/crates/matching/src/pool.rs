//! The units of one arm: equal rows once, in blocks for the processor, in a tree of boxes.

use crate::embed::Points;
use crate::instructions::LANES;
use crate::problem::{Method, Problem, small};
use crate::random::folded;
use crate::tree::{Layout, Tree};

/// Fewer points than this are not put into a tree, unless a tree is requested.
const FEW: usize = 512;

/// The units of one arm.
#[derive(Clone)]
pub struct Pool {
    /// Coordinates of a point.
    pub dimensions: usize,
    /// Columns with a finite caliper, by their place in the problem.
    pub fenced: Vec<usize>,
    /// Number of points.
    pub points: usize,
    /// Weight of all members of each point.
    pub weight: Vec<f64>,
    /// The tree over the blocks.
    pub tree: Tree,
    blocks: Vec<f64>,
    first_member: Vec<u32>,
    members: Vec<u32>,
}

impl Pool {
    /// The rows of one arm. Equal rows become one point if `merged`.
    pub fn new(problem: &Problem, points: &Points, rows: &[u32], merged: bool) -> Self {
        let fenced: Vec<usize> = problem.caliper.as_ref().map_or_else(Vec::new, |caliper| {
            (0..problem.columns)
                .filter(|&column| caliper[column].is_finite())
                .collect()
        });
        let fence: Vec<f64> = problem.caliper.as_ref().map_or_else(Vec::new, |caliper| {
            fenced.iter().map(|&column| caliper[column]).collect()
        });
        let (starts, grouped) = if merged {
            equal_rows(problem, rows)
        } else {
            ((0..=small(rows.len())).collect(), rows.to_vec())
        };
        let group = |group: u32| {
            &grouped[starts[group as usize] as usize..starts[group as usize + 1] as usize]
        };
        let count = starts.len() - 1;
        let dimensions = points.dimensions;
        let width = dimensions + fenced.len();
        let mut values = Vec::with_capacity(count * width);
        for &start in &starts[..count] {
            let row = grouped[start as usize] as usize;
            values.extend_from_slice(points.of(row));
            values.extend(
                fenced
                    .iter()
                    .map(|column| problem.x[row * problem.columns + column]),
            );
        }
        let mut order: Vec<u32> = (0..small(count)).collect();
        let layout = Layout {
            values: &values,
            dimensions,
            fence: &fence,
        };
        let tree = if count < FEW && problem.method != Method::Tree {
            Tree::flat(&layout)
        } else {
            Tree::new(&layout, &mut order)
        };

        let mut blocks = vec![f64::INFINITY; count.div_ceil(LANES) * LANES * dimensions];
        let mut first_member = Vec::with_capacity(count + 1);
        let mut members = Vec::with_capacity(rows.len());
        let mut weight = Vec::with_capacity(count);
        first_member.push(0);
        for (position, &place) in order.iter().enumerate() {
            let (block, lane) = (position / LANES, position % LANES);
            let point = &values[place as usize * width..][..dimensions];
            for (axis, &value) in point.iter().enumerate() {
                blocks[(block * dimensions + axis) * LANES + lane] = value;
            }
            let group = group(place);
            members.extend_from_slice(group);
            first_member.push(small(members.len()));
            weight.push(group.iter().map(|&row| problem.weight(row as usize)).sum());
        }
        Self {
            dimensions,
            fenced,
            points: count,
            weight,
            tree,
            blocks,
            first_member,
            members,
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

    /// Returns the number of blocks.
    pub fn block_count(&self) -> usize {
        self.points.div_ceil(LANES)
    }

    /// Takes the point out of every search to come.
    pub fn remove(&mut self, point: usize) {
        let (block, lane) = (point / LANES, point % LANES);
        let start = block * LANES * self.dimensions;
        self.blocks[start + lane] = f64::INFINITY;
        if self.blocks[start..start + LANES]
            .iter()
            .all(|value| *value == f64::INFINITY)
        {
            self.tree.close(block);
        }
    }
}

/// The rows, each group of equal rows ascending, and the start of each group.
fn equal_rows(problem: &Problem, rows: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let values = |row: u32| {
        let start = row as usize * problem.columns;
        &problem.x[start..start + problem.columns]
    };
    let mut keyed: Vec<(u64, u32)> = rows
        .iter()
        .map(|&row| {
            // Adding 0 makes a negative zero positive.
            let key = values(row)
                .iter()
                .fold(0, |key: u64, value| folded(key ^ (value + 0.0).to_bits()));
            (key, row)
        })
        .collect();
    keyed.sort_unstable();
    let mut starts = vec![0];
    for group in
        keyed.chunk_by(|left, right| left.0 == right.0 && values(left.1) == values(right.1))
    {
        starts.push(starts[starts.len() - 1] + small(group.len()));
    }
    (starts, keyed.into_iter().map(|(_, row)| row).collect())
}
