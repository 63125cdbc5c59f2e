//! The options of the fitness: the matching problem, and the measure of balance.

use crate::instructions::Instructions;
use crate::problem::Problem;

/// The measure of balance by which sets of matches are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The p-values of t-tests and Kolmogorov-Smirnov tests; larger is better.
    PValues(Loss),
    /// Distances between the distribution functions of the two arms; smaller is better.
    Distance(WithinColumn, AcrossColumns),
}

/// How p-values become the criteria of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All p-values in ascending order.
    Sorted,
    /// The smallest p-value only.
    Smallest,
    /// All p-values: first of the t-tests, then of the Kolmogorov-Smirnov tests.
    Unsorted,
}

/// How the distances at the values of a column become one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithinColumn {
    /// The mean distance.
    Mean,
    /// The median distance.
    Median,
    /// The largest distance.
    Largest,
}

/// How the distances of the columns become the criteria of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcrossColumns {
    /// The mean distance.
    Mean,
    /// The median distance.
    Median,
    /// All distances in descending order.
    Descending,
}

/// The matching problem and the measure of balance.
#[derive(Clone, Debug)]
pub struct Options {
    /// The units and the options of matching. The candidates replace the metric.
    pub problem: Problem,
    /// The covariates to balance, row after row.
    pub balance: Vec<f64>,
    /// Number of columns of `balance`.
    pub columns: usize,
    /// The measure of balance.
    pub measure: Measure,
    /// Whether Kolmogorov-Smirnov tests are among the p-values.
    pub kolmogorov_smirnov: bool,
    /// Number of bootstrap samples of the Kolmogorov-Smirnov tests; 0 for no bootstrap.
    pub boot: usize,
    /// Whether the t-tests are paired.
    pub paired: bool,
    /// Instructions of the processor; they change only the speed.
    pub instructions: Instructions,
}

impl Options {
    /// Returns the number of criteria of one candidate.
    #[must_use]
    pub fn criterion_count(&self) -> usize {
        let tests = self.columns * (1 + usize::from(self.kolmogorov_smirnov));
        match self.measure {
            Measure::PValues(Loss::Sorted | Loss::Unsorted) => tests,
            Measure::Distance(_, AcrossColumns::Descending) => self.columns,
            Measure::PValues(Loss::Smallest) | Measure::Distance(_, _) => 1,
        }
    }
}
