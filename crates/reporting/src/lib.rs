//! Code that Equipoise's Rust programs share: options, metrics, errors and exit statuses.

pub mod arguments;
pub mod metrics;
pub mod problem;
pub mod program;
