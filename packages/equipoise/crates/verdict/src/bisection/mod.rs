//! Finds the commit, between two commits, that changed the cost.
//!
//! The *culprit* is the commit that changed the cost. The *step* is the change. A block runs a pair
//! of commits a < b. If the culprit is not in (a, b], both commits cost the same. Then a bet on the
//! order of the block is fair: it neither wins nor loses on average. So if a bet on "b costs more"
//! wins, the bet is evidence against every commit outside (a, b].
//!
//! - `stake`: the bet on one block
//! - `estimates`: the step, the noise and the order effect, from past blocks
//! - `search`: the evidence against each commit, the next pair to run, the outcome

mod estimates;
mod search;
#[cfg(test)]
mod search_tests;
mod stake;

pub use search::{CommitGroup, Outcome, PairBlock, Search, SearchSettings};
