//! What every program of Equipoise in Rust shares: options, metrics and problems.

pub mod arguments;
pub mod metrics;
pub mod problem;
