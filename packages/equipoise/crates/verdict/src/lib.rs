//! Decides which of two conditions is slower, and by how much. The error rate holds however often
//! the result is looked at.
//!
//! In each block, a fair coin draws the order in which baseline A and candidate B run. Assume that
//! the ratio of their costs is constant, and that no trial affects the next trial. Divide the cost
//! of B by the true ratio. Then the costs say nothing about the coin. So a bet on the coin makes no
//! money on average (Ville 1939). Ratios against which bets win are excluded.
//!
//! `bisection` bets on the same coin to find which of many commits made a difference.
//!
//! Formulae, guarantees and sources: `docs/methods/interval.md`.

pub mod adjustment;
mod bet;
pub mod bisection;
pub mod block;
pub mod centre;
pub mod common;
pub mod forecast;
pub mod fraction;
mod order_statistics;
mod past;
pub mod probability;
mod rules;
mod search;
pub mod sensitivity;
pub mod sequence;
mod wealth;

pub use adjustment::{AdjustmentSummary, MAX_COVARIATES, NO_READINGS, PerCovariate, Readings};
pub use block::{Block, InvalidBlock, Order};
pub use centre::Centre;
pub use common::common_interval;
pub use forecast::{Forecast, Memory};
pub use fraction::FractionSequence;
pub use probability::SlowerCount;
pub use rules::{EQUIVALENCE_BLOCKS, EQUIVALENCE_LEVELS};
pub use sensitivity::Sensitivity;
pub use sequence::BettingSequence;
