//! The definition of a built-in workload.

use crate::arguments::Options;
use crate::metrics::Report;
use crate::problem::Problem;

/// A workload, as `main.rs` lists and runs it.
pub struct Workload {
    pub name: &'static str,
    /// One line for `--list`.
    pub summary: &'static str,
    pub help: &'static str,
    /// Function that parses the options and does the work.
    pub run: fn(&mut Options) -> Result<Report, Problem>,
}
