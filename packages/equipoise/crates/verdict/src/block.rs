//! One block of one pair of conditions.

use std::fmt;

use crate::adjustment::Readings;

/// Which of the two conditions ran first in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// s = +1: the candidate stood in the second place.
    BaselineFirst,
    /// s = −1: the baseline stood in the second place.
    CandidateFirst,
}

impl Order {
    /// s of docs/methods/interval.md: s·(d − θ) is the log cost at the second position minus the first,
    /// after e^θ has been removed from the candidate.
    #[must_use]
    pub fn sign(self) -> f64 {
        match self {
            Self::BaselineFirst => 1.0,
            Self::CandidateFirst => -1.0,
        }
    }
}

/// One block of one pair of conditions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// d = ln(cost of the candidate) − ln(cost of the baseline); infinite if one of the two timed
    /// out, NaN if both did: a tie.
    pub difference: f64,
    /// Which ran first.
    pub order: Order,
    /// Differences below this cannot be detected: 1.5 clock quanta, in log units.
    pub tolerance: f64,
    /// Readings before the two trials.
    pub readings: Readings,
}

/// A tie tolerance that is negative, infinite or no number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InvalidBlock {
    /// The tolerance that was given.
    pub tolerance: f64,
}

impl fmt::Display for InvalidBlock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "a tie tolerance is a finite number from 0 up, not {}",
            self.tolerance
        )
    }
}

impl std::error::Error for InvalidBlock {}
