//! What is judged, and by which measure.

use crate::instructions::Instructions;
use crate::problem::Problem;

/// What makes one set of matches better than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The p-values of t-tests and Kolmogorov-Smirnov tests; larger is better.
    PValues(Loss),
    /// The distance of the two distribution functions; smaller is better.
    Distance(Within, Across),
}

/// What becomes of the p-values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// They are sorted, the smallest first.
    Sorted,
    /// The smallest.
    Smallest,
    /// They stay as they are: those of the t-tests, then those of the Kolmogorov-Smirnov tests.
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

/// How the columns become criteria.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Their mean.
    Mean,
    /// Their median.
    Median,
    /// All of them, the largest first.
    Descending,
}

/// The units, how they are matched and what their balance is judged by.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is matched to whom, and how. The metric is left out of account: the candidates are it.
    pub problem: Problem,
    /// The covariates that are to be balanced, row after row.
    pub balance: Vec<f64>,
    /// Columns of `balance`.
    pub columns: usize,
    /// What is computed.
    pub measure: Measure,
    /// Whether Kolmogorov-Smirnov tests are among the p-values.
    pub kolmogorov_smirnov: bool,
    /// How many bootstrap samples stand for the p-value of those tests; 0 for none.
    pub boot: usize,
    /// Whether the t-test is paired.
    pub paired: bool,
    /// Of the processor; the answer is the same whichever.
    pub instructions: Instructions,
}

impl Options {
    /// How many numbers judge one candidate.
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
