//! One block of one pair of conditions.

use std::fmt;

use crate::adjustment::{NO_READINGS, Readings};

/// Which of the two conditions ran first in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The candidate ran second: s = 1.
    BaselineFirst,
    /// The baseline ran second: s = −1.
    CandidateFirst,
}

impl Order {
    /// The order that a fair coin draws: baseline first if the coin is true.
    pub(crate) fn drawn(coin: bool) -> Self {
        if coin {
            Self::BaselineFirst
        } else {
            Self::CandidateFirst
        }
    }

    /// The sign s of docs/methods/interval.md: 1 if the candidate ran second, else −1.
    #[must_use]
    pub fn sign(self) -> f64 {
        match self {
            Self::BaselineFirst => 1.0,
            Self::CandidateFirst => -1.0,
        }
    }
}

/// A block in which both conditions ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// d = ln(cost of the candidate) − ln(cost of the baseline); infinite if one of the two timed
    /// out; NaN (a tie) if both did.
    pub difference: f64,
    /// Which condition ran first.
    pub order: Order,
    /// Difference, in log units, up to which the block is a tie: 1.5 steps of the clock.
    pub tolerance: f64,
    /// Covariates that were read before the two trials.
    pub readings: Readings,
}

impl Block {
    /// A block without covariates.
    pub(crate) fn new(difference: f64, order: Order, tolerance: f64) -> Self {
        Self {
            difference,
            order,
            tolerance,
            readings: NO_READINGS,
        }
    }
}

/// The error for a tie tolerance that is negative, infinite or NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InvalidBlock {
    /// The rejected tolerance.
    pub tolerance: f64,
}

impl fmt::Display for InvalidBlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "a tie tolerance must be a finite number of at least 0, not {}",
            self.tolerance
        )
    }
}

impl std::error::Error for InvalidBlock {}
