//! The common part of Equipoise's Rust programs: options, metrics, problems, and how a program
//! begins and ends.

pub mod arguments;
pub mod metrics;
pub mod problem;
pub mod program;
