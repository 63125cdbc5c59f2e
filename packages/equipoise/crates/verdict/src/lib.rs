//! Decides which of two conditions is slower, and by how much. The error rate holds however often
//! the result is looked at.
//!
//! Two conditions, baseline A and candidate B, run in an order drawn by a fair coin in each
//! block. If the ratio of their costs is constant and nothing carries over, the difference of
//! the log costs by position has no information about the coin, so no strategy of betting on
//! the coin makes money (Ville 1939). Ratios that can be bet against with profit are excluded.
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
