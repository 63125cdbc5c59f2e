//! What Equipoise's Rust programs share: reading options, reporting metrics, and ending with an
//! exit status.

pub mod arguments;
pub mod metrics;
pub mod problem;
pub mod program;
