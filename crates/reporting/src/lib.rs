//! How a built-in program reads its options, reports what it measured and says what went wrong.

pub mod arguments;
pub mod metrics;
pub mod problem;
