//! Finds the commit between two that made the difference.
//!
//! A block runs two commits a < b. Unless the step is in (a, b], they behave alike and the coin
//! that ordered them is fair: the block bets against every commit outside (a, b].
//!
//! - `stake`: the bet on one block
//! - `sizes`: step, noise and slot effect, learnt from past blocks
//! - `search`: the e-values of all commits, what runs next, and how a search ends

mod search;
#[cfg(test)]
mod search_tests;
mod sizes;
mod stake;

pub use search::{Group, Outcome, PairBlock, Search, Segment};
