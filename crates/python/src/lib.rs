//! `equipoise._native`: the Python face of the crates. It converts options, arrays and errors.

mod betting;
mod bisection;
mod special;

use pyo3::prelude::*;

/// The native part of Equipoise.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::betting::{
        BettingSequence, FractionSequence, VerdictRules, common_interval, smallest_effects,
        verdict_rules,
    };
    #[pymodule_export]
    use crate::bisection::BisectionSearch;
    #[pymodule_export]
    use crate::special::{student_p_value, student_quantile};

    /// The version of Equipoise, one for both languages.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
