//! Exact nearest-neighbour matching of treated units and controls, the effects it gives and
//! their errors.
//!
//! Formulae, and where R's package Matching differs: `docs/methods/matching.md`.

mod eigen;
mod embed;
pub mod estimate;
pub mod fitness;
mod instructions;
pub mod matcher;
mod neighbours;
mod parallel;
mod pool;
pub mod problem;
mod random;
mod search;
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
pub use strata::{Matched, Outcomes, Strata};
