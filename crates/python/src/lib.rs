//! `equipoise._native`: the Python face of the crates. Converts arrays and errors, nothing else.

mod betting;
mod fitness;
mod genoud;
mod matching;
mod special;
mod strata;

use pyo3::prelude::*;

/// The native part of Equipoise.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::betting::{BettingSequence, FractionSequence};
    #[pymodule_export]
    use crate::fitness::{FitnessEngine, exact_smirnov_p_value, kolmogorov_p_value};
    #[pymodule_export]
    use crate::genoud::GenoudSearch;
    #[pymodule_export]
    use crate::matching::{MatchingEngine, matching_estimate};
    #[pymodule_export]
    use crate::special::{student_p_value, student_quantile};
    #[pymodule_export]
    use crate::strata::matching_strata;
}
