//! The units as points: equal rows once, with how many they are.

use crate::embed::{Points, embed};
use crate::fitness::blocks::LANES;
use crate::fitness::options::Options;
use crate::problem::{Metric, Problem, small};
use crate::random::mix;

/// The points: those of the controls first, then those of the treated.
pub struct Units {
    /// Number of points that are controls.
    pub controls: usize,
    /// Rows of each point.
    pub count: Vec<u32>,
    /// Weight of these rows together.
    pub weight: Vec<f64>,
    /// One row of each point.
    pub row: Vec<u32>,
    /// The point of each row.
    pub point_of: Vec<u32>,
    /// Standardised covariates, point after point.
    pub standard: Vec<f64>,
    /// Number of covariates.
    pub columns: usize,
}

impl Units {
    /// The rows of the problem; those that agree in arm, covariates and balance are one point.
    pub fn new(options: &Options) -> Self {
        let problem = &options.problem;
        let points = standardised(problem);
        let mut row = Vec::new();
        let mut count = Vec::new();
        let mut weight = Vec::new();
        let mut point_of = vec![0; problem.rows()];
        let mut controls = 0;
        for arm in [false, true] {
            let mut groups = equal_rows(options, arm);
            by_nearness(&mut groups, &|row| points.of(row as usize));
            for group in groups {
                for &member in &group {
                    point_of[member as usize] = small(row.len());
                }
                row.push(group[0]);
                count.push(small(group.len()));
                weight.push(
                    group
                        .iter()
                        .map(|&member| problem.weight(member as usize))
                        .sum(),
                );
            }
            if !arm {
                controls = row.len();
            }
        }
        let values = row.iter().map(|&row| points.of(row as usize));
        let standard = values.flatten().copied().collect();
        Self {
            controls,
            count,
            weight,
            row,
            point_of,
            standard,
            columns: problem.columns,
        }
    }

    /// Returns the number of points.
    pub fn points(&self) -> usize {
        self.row.len()
    }

    /// The points of one arm.
    pub fn arm(&self, treated: bool) -> std::ops::Range<usize> {
        if treated {
            self.controls..self.points()
        } else {
            0..self.controls
        }
    }
}

/// The standardised covariates of all rows.
fn standardised(problem: &Problem) -> Points {
    embed(&Problem {
        metric: Metric::InverseVariance,
        ..problem.clone()
    })
}

/// The rows of the arm, each group of equal ones ascending.
fn equal_rows(options: &Options, arm: bool) -> Vec<Vec<u32>> {
    let problem = &options.problem;
    let values = |row: u32| {
        let row = row as usize;
        let covariates = &problem.x[row * problem.columns..(row + 1) * problem.columns];
        let balance = &options.balance[row * options.columns..(row + 1) * options.columns];
        covariates.iter().chain(balance)
    };
    let mut keyed: Vec<(u64, u32)> = (0..problem.rows())
        .filter(|&row| problem.treated[row] == arm)
        .map(|row| {
            let row = small(row);
            // Adding 0 makes a negative zero positive.
            let key = values(row).fold(0, |key: u64, value| mix(key ^ (value + 0.0).to_bits()));
            (key, row)
        })
        .collect();
    keyed.sort_unstable();
    keyed
        .chunk_by(|left, right| left.0 == right.0 && values(left.1).eq(values(right.1)))
        .map(|group| group.iter().map(|&(_, row)| row).collect())
        .collect()
}

/// The columns with a finite caliper.
pub struct Calipers {
    /// The caliper, and the values of all points in its unit.
    columns: Vec<(f64, Vec<f64>)>,
}

impl Calipers {
    /// The calipers of the problem.
    pub fn new(problem: &Problem, units: &Units) -> Self {
        let limits = problem.caliper.iter().flatten().enumerate();
        let columns = limits
            .filter(|(_, limit)| limit.is_finite())
            .map(|(column, &limit)| {
                let value = |&row: &u32| problem.x[row as usize * problem.columns + column];
                (limit, units.row.iter().map(value).collect())
            })
            .collect();
        Self { columns }
    }

    /// Whether two points are no further apart than the caliper in any column.
    #[inline]
    pub fn admit(&self, point: usize, other: usize) -> bool {
        self.columns
            .iter()
            .all(|(limit, values)| (values[point] - values[other]).abs() <= *limit)
    }
}

/// Orders groups of rows so that each block of `LANES` is in a small box: halved again and again
/// in the column in which they are furthest apart. `of` gives the values of a row.
fn by_nearness<'a>(groups: &mut [Vec<u32>], of: &impl Fn(u32) -> &'a [f64]) {
    if groups.len() <= LANES {
        return;
    }
    let mut low = of(groups[0][0]).to_vec();
    let mut high = low.clone();
    for group in groups.iter() {
        for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(of(group[0])) {
            *low = low.min(value);
            *high = high.max(value);
        }
    }
    let width = |column: usize| high[column] - low[column];
    let widest = (0..low.len())
        .max_by(|&left, &right| width(left).total_cmp(&width(right)))
        .unwrap_or(0);
    let middle = (groups.len() / 2).next_multiple_of(LANES);
    let value = |group: &Vec<u32>| of(group[0])[widest];
    groups.select_nth_unstable_by(middle, |left, right| {
        value(left)
            .total_cmp(&value(right))
            .then(left[0].cmp(&right[0]))
    });
    let (first, second) = groups.split_at_mut(middle);
    by_nearness(first, of);
    by_nearness(second, of);
}
