//! Calipers: how far two points may lie apart in single columns.

use crate::fitness::units::Units;
use crate::problem::Problem;

/// The columns with a finite caliper.
pub struct Fences {
    /// The caliper, and the values of all points in its unit.
    columns: Vec<(f64, Vec<f64>)>,
}

impl Fences {
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

    /// Whether two points lie no further apart than the caliper in any column.
    #[inline]
    pub fn admit(&self, point: usize, other: usize) -> bool {
        self.columns
            .iter()
            .all(|(limit, values)| (values[point] - values[other]).abs() <= *limit)
    }
}
