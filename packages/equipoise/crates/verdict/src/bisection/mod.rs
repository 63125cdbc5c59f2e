//! Finds the commit, between two commits, that changed the cost.
//!
//! The *step* is the change in cost. The *culprit* is the commit that made it. A block runs a pair
//! of commits a < b. If the culprit is not in (a, b], both commits cost the same. Then a bet on the
//! order of the block is fair: it neither wins nor loses on average. So if a bet on "b costs more"
//! wins, that is evidence against every commit outside (a, b].
//!
//! - `stake`: the bet on one block
//! - `sizes`: the step, the noise and the order effect, estimated from past blocks
//! - `search`: e-values of commits (in a `Group` with those that cannot run), next pair, outcome

mod search;
#[cfg(test)]
mod search_tests;
mod sizes;
mod stake;

pub use search::{Group, Outcome, PairBlock, Search, SearchSettings};
