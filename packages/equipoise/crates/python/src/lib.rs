//! The Python module `equipoise._native`: converts options, arrays and errors for the crates.

mod betting;
mod bisection;
mod special;

use pyo3::prelude::*;

/// The native part of Equipoise.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::betting::{BettingSequence, FractionSequence, common_interval, smallest_effects};
    #[pymodule_export]
    use crate::bisection::BisectionSearch;
    #[pymodule_export]
    use crate::special::{student_p_value, student_quantile};

    /// The version of Equipoise, one for both languages.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Factor by which the level is multiplied for the interval that decides on "equivalent".
    #[pymodule_export]
    const EQUIVALENCE_LEVELS: f64 = equipoise_verdict::EQUIVALENCE_LEVELS;

    /// Smallest number of blocks for the verdict "equivalent".
    #[pymodule_export]
    const EQUIVALENCE_BLOCKS: usize = equipoise_verdict::EQUIVALENCE_BLOCKS;
}
