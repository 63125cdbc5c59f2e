//! What two conditions did, as files to look at: a flame graph and a profile for Firefox.

mod conditions;
pub mod firefox;
pub mod flame_graph;

pub use conditions::{Conditions, read};
