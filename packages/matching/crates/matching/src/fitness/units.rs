//! The units as points. A point stands for all rows of one arm that have equal values.

use crate::embed::{Points, embed};
use crate::fitness::blocks::LANES;
use crate::fitness::options::Options;
use crate::problem::{Metric, Problem, to_u32};
use crate::random::mix;

/// The points, first of the controls, then of the treated.
pub struct Units {
    /// Number of points that are controls.
    pub controls: usize,
    /// Number of rows of each point.
    pub row_count: Vec<u32>,
    /// Total weight of the rows of each point.
    pub weights: Vec<f64>,
    /// First row of each point.
    pub first_row: Vec<u32>,
    /// Index of each row's point.
    pub point_of_row: Vec<u32>,
    /// Standardised covariates, point after point.
    pub standardised: Vec<f64>,
    pub columns: usize,
}

impl Units {
    /// Makes one point of all rows that agree in arm, covariates and covariates to balance.
    pub fn new(options: &Options) -> Self {
        let problem = &options.problem;
        let points = standardised_points(problem);
        let mut first_row = Vec::new();
        let mut row_count = Vec::new();
        let mut weights = Vec::new();
        let mut point_of_row = vec![0; problem.rows()];
        let mut controls = 0;
        for arm in [false, true] {
            let mut groups = equal_rows(options, arm);
            order_by_nearness(&mut groups, &|row| points.row(row as usize));
            for group in groups {
                for &member in &group {
                    point_of_row[member as usize] = to_u32(first_row.len());
                }
                first_row.push(group[0]);
                row_count.push(to_u32(group.len()));
                let row_weights = group.iter().map(|&row| problem.weight(row as usize));
                weights.push(row_weights.sum());
            }
            if !arm {
                controls = first_row.len();
            }
        }
        let values = first_row.iter().map(|&row| points.row(row as usize));
        let standardised = values.flatten().copied().collect();
        Self {
            controls,
            row_count,
            weights,
            first_row,
            point_of_row,
            standardised,
            columns: problem.columns,
        }
    }

    pub fn points(&self) -> usize {
        self.first_row.len()
    }

    /// Returns the indices of the points of one arm.
    pub fn arm(&self, treated: bool) -> std::ops::Range<usize> {
        if treated {
            self.controls..self.points()
        } else {
            0..self.controls
        }
    }
}

fn standardised_points(problem: &Problem) -> Points {
    embed(&Problem {
        metric: Metric::InverseVariance,
        ..problem.clone()
    })
}

/// Returns the groups of equal rows of an arm; the rows of a group are ascending.
fn equal_rows(options: &Options, arm: bool) -> Vec<Vec<u32>> {
    let problem = &options.problem;
    let values = |row: u32| {
        let row = row as usize;
        let covariates = &problem.x[row * problem.columns..(row + 1) * problem.columns];
        let balance = &options.balance[row * options.columns..(row + 1) * options.columns];
        covariates.iter().chain(balance)
    };
    let mut hashes: Vec<(u64, u32)> = (0..problem.rows())
        .filter(|&row| problem.treated[row] == arm)
        .map(|row| {
            let row = to_u32(row);
            // Adding 0 makes a negative zero positive, so that both have the same hash.
            let hash = values(row).fold(0, |hash: u64, value| mix(hash ^ (value + 0.0).to_bits()));
            (hash, row)
        })
        .collect();
    hashes.sort_unstable();
    hashes
        .chunk_by(|left, right| left.0 == right.0 && values(left.1).eq(values(right.1)))
        .map(|group| group.iter().map(|&(_, row)| row).collect())
        .collect()
}

/// The finite calipers, and the values that they limit.
pub struct Calipers {
    /// For each column with a caliper: the caliper, and the value of each point.
    columns: Vec<(f64, Vec<f64>)>,
}

impl Calipers {
    pub fn new(problem: &Problem, units: &Units) -> Self {
        let limits = problem.caliper.iter().flatten().enumerate();
        let columns = limits
            .filter(|(_, limit)| limit.is_finite())
            .map(|(column, &limit)| {
                let value = |&row: &u32| problem.x[row as usize * problem.columns + column];
                (limit, units.first_row.iter().map(value).collect())
            })
            .collect();
        Self { columns }
    }

    /// Whether two points differ in each column by at most its caliper.
    #[inline]
    pub fn admit(&self, point: usize, other: usize) -> bool {
        self.columns
            .iter()
            .all(|(limit, values)| (values[point] - values[other]).abs() <= *limit)
    }
}

/// Orders groups of rows so that each block of `LANES` groups fits into a small box. Divides the
/// groups along the column with the largest extent, then does the same with both halves.
fn order_by_nearness<'a>(groups: &mut [Vec<u32>], values_of: &impl Fn(u32) -> &'a [f64]) {
    if groups.len() <= LANES {
        return;
    }
    let mut low = values_of(groups[0][0]).to_vec();
    let mut high = low.clone();
    for group in groups.iter() {
        for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(values_of(group[0])) {
            *low = low.min(value);
            *high = high.max(value);
        }
    }
    let width = |column: usize| high[column] - low[column];
    let widest = (0..low.len())
        .max_by(|&left, &right| width(left).total_cmp(&width(right)))
        .unwrap_or(0);
    let middle = (groups.len() / 2).next_multiple_of(LANES);
    let value = |group: &Vec<u32>| values_of(group[0])[widest];
    groups.select_nth_unstable_by(middle, |left, right| {
        value(left)
            .total_cmp(&value(right))
            .then(left[0].cmp(&right[0]))
    });
    let (first, second) = groups.split_at_mut(middle);
    order_by_nearness(first, values_of);
    order_by_nearness(second, values_of);
}
