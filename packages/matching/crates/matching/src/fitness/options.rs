//! The options of the fitness: the problem, and the measure of balance.

use crate::instructions::Instructions;
use crate::problem::Problem;

/// The measure by which sets of matches are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The p-values of t-tests and Kolmogorov-Smirnov tests; larger is better.
    PValues(Loss),
    /// The distance of the two distribution functions; smaller is better.
    Distance(Within, Across),
}

/// The criteria that are made of the p-values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// They are sorted, the smallest first.
    Sorted,
    /// The smallest.
    Smallest,
    /// Unchanged: those of the t-tests, then those of the Kolmogorov-Smirnov tests.
    Unsorted,
}

/// Which of a column's distances at all its values counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Their mean.
    Mean,
    /// Their median.
    Median,
    /// The largest.
    Largest,
}

/// The criteria that are made of the columns' distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Their mean.
    Mean,
    /// Their median.
    Median,
    /// All of them, the largest first.
    Descending,
}

/// The units, the options of matching, and the measure of balance.
#[derive(Clone, Debug)]
pub struct Options {
    /// The units and how they are matched, without the metric: the candidates are the metric.
    pub problem: Problem,
    /// The covariates that are to be balanced, row after row.
    pub balance: Vec<f64>,
    /// Columns of `balance`.
    pub columns: usize,
    /// The measure to compute.
    pub measure: Measure,
    /// Whether Kolmogorov-Smirnov tests are among the p-values.
    pub kolmogorov_smirnov: bool,
    /// Number of bootstrap samples for the p-values of those tests; 0 for none.
    pub boot: usize,
    /// Whether the t-test is paired.
    pub paired: bool,
    /// Instructions of the processor, which change the speed only.
    pub instructions: Instructions,
}

impl Options {
    /// Returns the number of criteria of one candidate.
    #[must_use]
    pub fn criteria(&self) -> usize {
        let tests = self.columns * (1 + usize::from(self.kolmogorov_smirnov));
        match self.measure {
            Measure::PValues(Loss::Sorted | Loss::Unsorted) => tests,
            Measure::Distance(_, Across::Descending) => self.columns,
            Measure::PValues(Loss::Smallest) | Measure::Distance(_, _) => 1,
        }
    }
}
