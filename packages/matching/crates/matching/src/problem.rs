//! The units to match, and how to match them.

/// The units to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimand {
    /// Every treated unit is matched to controls.
    Treated,
    /// Every control is matched to treated units.
    Controls,
    /// Every unit is matched to the other arm.
    All,
}

impl Estimand {
    /// Whether units of the arm are matched to the other arm.
    #[must_use]
    pub fn queries(self, treated: bool) -> bool {
        match self {
            Self::Treated => treated,
            Self::Controls => !treated,
            Self::All => true,
        }
    }

    /// The arms whose units are matched to the other arm, controls first.
    #[must_use]
    pub fn arms(self) -> Vec<bool> {
        [false, true]
            .into_iter()
            .filter(|&arm| self.queries(arm))
            .collect()
    }

    /// Whether units of the arm serve as matches.
    #[must_use]
    pub fn serves(self, treated: bool) -> bool {
        self.queries(!treated)
    }
}

/// The rules to follow where R's package Matching differs from the right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The right answer.
    Correct,
    /// The answer of R's package Matching 4.10.
    AsInR,
}

/// The measure of distance on the standardised covariates.
#[derive(Clone, Debug, PartialEq)]
pub enum Metric {
    /// The identity: each column counts in units of its standard deviation.
    InverseVariance,
    /// The inverse of the correlation matrix.
    Mahalanobis,
    /// A symmetric positive semidefinite matrix, row after row.
    Matrix(Vec<f64>),
}

/// The method of the search; each method finds the same neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The faster method for these data.
    Chosen,
    /// Every distance is computed.
    BruteForce,
    /// A tree of boxes skips points that are too far.
    Tree,
}

/// A pair whose distance is given, or that is forbidden.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Restriction {
    /// One row.
    pub first: usize,
    /// The other row.
    pub second: usize,
    /// The squared distance; forbidden if negative.
    pub squared_distance: f64,
}

/// The units to match, and how. The caller has checked lengths and finiteness.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Covariates, row after row.
    pub x: Vec<f64>,
    /// Columns of `x`.
    pub columns: usize,
    /// Whether each row is treated; both arms occur.
    pub treated: Vec<bool>,
    /// Observation weights: `None`, or one for each row.
    pub weights: Option<Vec<f64>>,
    /// The units to match.
    pub estimand: Estimand,
    /// M: how many matches each unit gets, before ties.
    pub matches: usize,
    /// The measure of distance.
    pub metric: Metric,
    /// Largest difference of two matched rows in each column of `x`; infinite for no limit.
    pub caliper: Option<Vec<f64>>,
    /// Pairs with a given distance.
    pub restrictions: Vec<Restriction>,
    /// Whether a unit may serve more than once.
    pub replace: bool,
    /// Whether all ties are kept; if not, some are drawn by lot.
    pub ties: bool,
    /// Squared distances that differ by no more are ties.
    pub tolerance: f64,
    /// The rules to follow where R differs.
    pub rules: Rules,
    /// Number of threads; 0 means one on each core.
    pub threads: usize,
    /// Seed of the lots.
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

    /// The weight of the row, 1 without weights.
    #[must_use]
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[row])
    }

    /// The largest squared distance that still ties with the given one.
    #[must_use]
    pub fn reach(&self, squared: f64) -> f64 {
        squared + self.tolerance + 1e-10
    }
}

/// A row or point as 32 bits.
pub(crate) fn small(index: usize) -> u32 {
    u32::try_from(index).expect("the caller has checked that there are fewer than 2^32 rows")
}

/// Which unit is matched to which; the pairs are in the order of the rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// The unit that was matched.
    pub query: Vec<usize>,
    /// Its match, of the other arm.
    pub matched: Vec<usize>,
    /// Weight of each pair: the weights of one unit's pairs add up to the unit's weight.
    pub weight: Vec<f64>,
    /// Units without enough admissible matches.
    pub dropped: Vec<usize>,
}

impl Pairs {
    /// The unit, its match and the weight of each pair.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let units = self.query.iter().zip(&self.matched);
        units
            .zip(&self.weight)
            .map(|((&query, &matched), &weight)| (query, matched, weight))
    }
}
