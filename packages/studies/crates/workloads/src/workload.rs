//! The definition of a built-in workload.

use crate::arguments::Options;
use crate::metrics::Report;
use crate::problem::Problem;

/// One built-in workload.
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// One line for `--list`.
    pub summary: &'static str,
    /// Text for `--help`.
    pub help: &'static str,
    /// Function that parses the options and does the work.
    pub run: fn(&mut Options) -> Result<Report, Problem>,
}
