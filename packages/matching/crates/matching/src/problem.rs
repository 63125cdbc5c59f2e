//! The units to match, and the options of matching.
//!
//! An arm is all treated units or all controls; as a `bool`, `true` is the treated arm.

/// The units whose effect is estimated: they are matched to units of the other arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimand {
    /// Treated units, each matched to controls.
    Treated,
    /// Controls, each matched to treated units.
    Controls,
    /// All units, each matched to units of the other arm.
    All,
}

impl Estimand {
    /// Whether the units of this arm are matched to the other arm.
    #[must_use]
    pub fn matches_arm(self, treated: bool) -> bool {
        match self {
            Self::Treated => treated,
            Self::Controls => !treated,
            Self::All => true,
        }
    }

    /// Returns the arms whose units are matched to the other arm, controls first.
    #[must_use]
    pub fn matched_arms(self) -> Vec<bool> {
        [false, true]
            .into_iter()
            .filter(|&arm| self.matches_arm(arm))
            .collect()
    }

    /// Whether the units of this arm can be matches of other units.
    #[must_use]
    pub fn takes_matches_from(self, treated: bool) -> bool {
        self.matches_arm(!treated)
    }
}

/// Whether to compute the correct answer or R's, where these differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The correct answer.
    Correct,
    /// The answer of R's package Matching 4.10.
    AsInR,
}

/// The measure of distance on the standardised covariates.
#[derive(Clone, Debug, PartialEq)]
pub enum Metric {
    /// Euclidean distance, with each column in units of its standard deviation.
    InverseVariance,
    /// Mahalanobis distance: the weight matrix is the inverse of the correlation matrix.
    Mahalanobis,
    /// A symmetric positive semidefinite weight matrix, row after row.
    Matrix(Vec<f64>),
}

/// How neighbours are searched for; all methods find the same neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The faster method for these data, which a short trial finds.
    Automatic,
    /// Compute every distance.
    BruteForce,
    /// Skip points that are too far, with a tree of boxes.
    Tree,
}

/// A pair of rows with a given distance, or a pair that must not be matched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Restriction {
    /// Index of one row.
    pub first: usize,
    /// Index of the other row.
    pub second: usize,
    /// The squared distance; a negative value forbids the pair.
    pub squared_distance: f64,
}

/// Rounding error of squared distances, which is added to the tolerance of ties.
const TIE_ROUNDING: f64 = 1e-10;

/// The units to match and all options. The caller has checked lengths and finiteness.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Covariates, row after row.
    pub x: Vec<f64>,
    /// Number of columns of `x`.
    pub columns: usize,
    /// Whether each row is treated; both arms occur.
    pub treated: Vec<bool>,
    /// Observation weight of each row; `None` if all rows weigh 1.
    pub weights: Option<Vec<f64>>,
    /// The units whose effect is estimated.
    pub estimand: Estimand,
    /// Number of matches of each unit, not counting ties (M in the literature).
    pub matches: usize,
    /// The measure of distance.
    pub metric: Metric,
    /// Largest difference of two matched rows in each column of `x`; infinite for no limit.
    pub caliper: Option<Vec<f64>>,
    /// Pairs with a given distance, and forbidden pairs.
    pub restrictions: Vec<Restriction>,
    /// Whether a unit may be the match of several units.
    pub replace: bool,
    /// Whether a unit keeps all tied matches; if not, a random draw picks among them.
    pub ties: bool,
    /// Squared distances that differ by at most this are ties.
    pub tolerance: f64,
    /// Whether to compute the correct answer or R's, where these differ.
    pub rules: Rules,
    /// Number of threads; 0 means one for each core.
    pub threads: usize,
    /// Seed of the random draws among ties.
    pub seed: u64,
    /// The method of the search.
    pub method: Method,
}

impl Problem {
    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.treated.len()
    }

    /// Returns the observation weight of a row.
    #[must_use]
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// Returns the largest squared distance that still ties with the given one.
    #[must_use]
    pub fn tie_limit(&self, squared: f64) -> f64 {
        squared + self.tolerance + TIE_ROUNDING
    }
}

pub(crate) fn to_u32(index: usize) -> u32 {
    u32::try_from(index).expect("the caller has checked that there are fewer than 2^32 rows")
}

/// The matched pairs, in the order of the units' rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// Row of the unit that was matched, for each pair.
    pub query: Vec<usize>,
    /// Row of the match of this unit, which is of the other arm, for each pair.
    pub matched: Vec<usize>,
    /// Weight of each pair. The weights of the pairs of a unit add up to the weight of the unit.
    pub weight: Vec<f64>,
    /// Rows of the units with too few possible matches.
    pub dropped: Vec<usize>,
}

impl Pairs {
    /// Iterates over the pairs: row of the unit, row of its match, weight.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let units = self.query.iter().zip(&self.matched);
        units
            .zip(&self.weight)
            .map(|((&query, &matched), &weight)| (query, matched, weight))
    }
}
