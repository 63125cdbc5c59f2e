//! Exact nearest-neighbour matching of treated units to controls, and estimates of the treatment
//! effect with their standard errors.
//!
//! `docs/methods/matching.md` has the formulae and the differences from R's package Matching.

pub mod cheap;
mod closest;
mod eigen;
mod embed;
pub mod estimate;
mod filter;
pub mod fitness;
pub mod flow;
mod instructions;
pub mod matcher;
mod neighbours;
mod parallel;
mod pool;
pub mod problem;
pub mod quick;
mod random;
pub mod score;
mod search;
mod single;
pub mod strata;
mod tree;
mod variance;
mod without_replacement;

pub use estimate::{Estimate, Sample};
pub use fitness::Fitness;
pub use instructions::Instructions;
pub use matcher::Matcher;
pub use parallel::Progress;
pub use problem::{Estimand, Method, Metric, Pairs, Problem, Restriction, Rules};
pub use quick::{QuickProblem, QuickStrata};
pub use score::{ScoreOrder, ScoreProblem};
pub use strata::{Outcomes, Strata, StrataResult};
