//! The units of one arm, arranged for a fast search. Equal rows are one point. Sixteen points are a
//! block. The blocks are the leaves of a tree of boxes.

use crate::embed::Points;
use crate::instructions::LANES;
use crate::problem::{Method, Problem, to_u32};
use crate::random::hash;
use crate::tree::{Tree, TreeInput};

/// Fewer points than this are searched without a tree, unless the caller requests a tree.
const MIN_TREE_POINTS: usize = 512;

/// The units of one arm as points.
#[derive(Clone)]
pub struct Pool {
    pub dimensions: usize,
    /// Indices of the columns with a finite caliper.
    pub caliper_columns: Vec<usize>,
    pub point_count: usize,
    /// Total weight of the rows of each point.
    pub weight: Vec<f64>,
    pub tree: Tree,
    /// Coordinates, block after block. A block has sixteen numbers, one for each point, for each
    /// axis. A missing or removed point has an infinite coordinate, so it is never near.
    blocks: Vec<f64>,
    /// Index in `members` of the first row of each point.
    first_member: Vec<u32>,
    /// Rows of the points, point after point.
    members: Vec<u32>,
}

impl Pool {
    /// Builds the pool from the rows of one arm. Equal rows become one point if `merges_rows`.
    pub fn new(problem: &Problem, points: &Points, rows: &[u32], merges_rows: bool) -> Self {
        let columns: Vec<usize> = problem.caliper.as_ref().map_or_else(Vec::new, |caliper| {
            (0..problem.columns)
                .filter(|&column| caliper[column].is_finite())
                .collect()
        });
        let calipers: Vec<f64> = problem.caliper.as_ref().map_or_else(Vec::new, |caliper| {
            columns.iter().map(|&column| caliper[column]).collect()
        });
        let (group_starts, grouped_rows) = if merges_rows {
            equal_rows(problem, rows)
        } else {
            ((0..=to_u32(rows.len())).collect(), rows.to_vec())
        };
        let rows_of_group = |group: u32| {
            let group = group as usize;
            &grouped_rows[group_starts[group] as usize..group_starts[group + 1] as usize]
        };
        let point_count = group_starts.len() - 1;
        let dimensions = points.dimensions;
        let width = dimensions + columns.len();
        let mut values = Vec::with_capacity(point_count * width);
        for &start in &group_starts[..point_count] {
            let row = grouped_rows[start as usize] as usize;
            values.extend_from_slice(points.row(row));
            let value = |column: &usize| problem.x[row * problem.columns + column];
            values.extend(columns.iter().map(value));
        }
        let mut order: Vec<u32> = (0..to_u32(point_count)).collect();
        let input = TreeInput {
            values: &values,
            dimensions,
            calipers: &calipers,
        };
        let tree = if point_count < MIN_TREE_POINTS && problem.method != Method::Tree {
            Tree::empty(&input)
        } else {
            Tree::new(&input, &mut order)
        };

        let mut blocks = vec![f64::INFINITY; point_count.div_ceil(LANES) * LANES * dimensions];
        let mut first_member = Vec::with_capacity(point_count + 1);
        let mut members = Vec::with_capacity(rows.len());
        let mut weight = Vec::with_capacity(point_count);
        first_member.push(0);
        for (point, &group) in order.iter().enumerate() {
            let (block, lane) = (point / LANES, point % LANES);
            let coordinates = &values[group as usize * width..][..dimensions];
            for (axis, &value) in coordinates.iter().enumerate() {
                blocks[(block * dimensions + axis) * LANES + lane] = value;
            }
            let point_rows = rows_of_group(group);
            members.extend_from_slice(point_rows);
            first_member.push(to_u32(members.len()));
            let weights = point_rows.iter().map(|&row| problem.weight(row as usize));
            weight.push(weights.sum());
        }
        Self {
            dimensions,
            caliper_columns: columns,
            point_count,
            weight,
            tree,
            blocks,
            first_member,
            members,
        }
    }

    /// Returns the rows of this point, in ascending order.
    pub fn members(&self, point: usize) -> &[u32] {
        &self.members[self.first_member[point] as usize..self.first_member[point + 1] as usize]
    }

    /// Returns the coordinates of a block, axis after axis.
    pub fn block(&self, block: usize) -> &[f64] {
        let size = LANES * self.dimensions;
        &self.blocks[block * size..(block + 1) * size]
    }

    pub fn block_count(&self) -> usize {
        self.point_count.div_ceil(LANES)
    }

    /// Excludes a point from all later searches.
    pub fn remove(&mut self, point: usize) {
        let (block, lane) = (point / LANES, point % LANES);
        let start = block * LANES * self.dimensions;
        // One infinite coordinate, on the first axis, makes all distances infinite.
        self.blocks[start + lane] = f64::INFINITY;
        if self.blocks[start..start + LANES]
            .iter()
            .all(|value| *value == f64::INFINITY)
        {
            self.tree.close(block);
        }
    }
}

/// Returns the rows by groups of equal rows, each ascending, and the start of each group.
fn equal_rows(problem: &Problem, rows: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let values = |row: u32| {
        let start = row as usize * problem.columns;
        &problem.x[start..start + problem.columns]
    };
    let mut hashes: Vec<(u64, u32)> = rows
        .iter()
        .map(|&row| {
            // Adding 0 makes a negative zero positive, so that both have the same hash.
            let key = values(row)
                .iter()
                .fold(0, |key: u64, value| hash(key ^ (value + 0.0).to_bits()));
            (key, row)
        })
        .collect();
    hashes.sort_unstable();
    let mut starts = vec![0];
    for group in
        hashes.chunk_by(|left, right| left.0 == right.0 && values(left.1) == values(right.1))
    {
        starts.push(starts[starts.len() - 1] + to_u32(group.len()));
    }
    (starts, hashes.into_iter().map(|(_, row)| row).collect())
}
