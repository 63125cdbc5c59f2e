//! `equipoise._native`: the Python face of the crates. It converts options, arrays and errors.

mod arrays;
mod betting;
mod bisection;
mod fitness;
mod genoud;
mod matching;
mod progress;
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
    use crate::fitness::{FitnessEngine, kolmogorov_p_value, smirnov_p_value};
    #[pymodule_export]
    use crate::genoud::GenoudSearch;
    #[pymodule_export]
    use crate::matching::{Estimate, Matcher, Pairs, estimate_effect, match_strata};
    #[pymodule_export]
    use crate::special::{student_p_value, student_quantile};

    /// The version of Equipoise, one for both languages.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
