//! The Python module `equipoise_matching._native`: converts options, arrays and errors.

mod arrays;
mod designs;
mod fitness;
mod flow;
mod genoud;
mod matching;
mod progress;

use pyo3::prelude::*;

/// The Rust part of `equipoise_matching`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::designs::{match_on_score, quick_strata};
    #[pymodule_export]
    use crate::fitness::{FitnessEngine, kolmogorov_p_value, smirnov_p_value};
    #[pymodule_export]
    use crate::flow::{PairFlow, cheap_pairs};
    #[pymodule_export]
    use crate::genoud::GenoudSearch;
    #[pymodule_export]
    use crate::matching::{Estimate, Matcher, Pairs, estimate_effect, match_strata};
}
