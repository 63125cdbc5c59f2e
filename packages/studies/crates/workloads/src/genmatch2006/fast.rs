//! Equipoise's own matching, on one thread like the other algorithms.

use equipoise_matching::{Estimand, Matcher, Method, Metric, Pairs, Problem, Rules};

use super::data::{COVARIATES, Data};
use super::matching::{Matching, TOLERANCE};

/// The algorithm `fast`.
pub struct Fast<'a> {
    pub data: &'a Data,
}

impl Matching for Fast<'_> {
    fn matches(&mut self, weights: &[f64]) -> Pairs {
        let columns = COVARIATES.len();
        let mut matrix = vec![0.0; columns * columns];
        for (element, weight) in matrix.iter_mut().step_by(columns + 1).zip(weights) {
            *element = *weight;
        }
        Matcher::new(Problem {
            x: self.data.covariates.clone(),
            columns,
            treated: self.data.treated.clone(),
            weights: None,
            estimand: Estimand::All,
            matches: 1,
            metric: Metric::Matrix(matrix),
            caliper: None,
            restrictions: Vec::new(),
            replace: true,
            ties: true,
            tolerance: TOLERANCE,
            rules: Rules::Correct,
            threads: 1,
            seed: 0,
            method: Method::Automatic,
        })
        .pairs(&|_, _| true)
        .expect("progress never asks to stop")
    }
}
