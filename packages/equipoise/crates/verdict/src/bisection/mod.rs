//! Finds the commit, between two commits, that changed the cost.
//!
//! A block runs two commits a < b. Unless the step (the change in cost) is in (a, b], both cost the
//! same and the coin that ordered them is fair. So a block bets against all commits outside.
//!
//! - `stake`: the bet on one block
//! - `sizes`: step, noise and slot effect, estimated from past blocks
//! - `search`: the e-values of all commits, the choice of the next pair, and the end of a search

mod search;
#[cfg(test)]
mod search_tests;
mod sizes;
mod stake;

pub use search::{Group, Outcome, PairBlock, Search, SearchSettings};
