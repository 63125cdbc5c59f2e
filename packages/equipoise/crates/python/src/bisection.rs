//! The Python class that searches for the commit that changed the cost. `_native.pyi` documents it;
//! `equipoise-verdict` computes the results.

use equipoise_verdict::bisection::{Outcome, PairBlock, Search, SearchSettings};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bets against each commit between two commits whose costs differ.
#[pyclass(module = "equipoise._native")]
pub struct BisectionSearch {
    inner: Search,
    commits: usize,
}

#[pymethods]
impl BisectionSearch {
    #[new]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a list is extracted as a vector"
    )]
    fn new(
        commits: usize,
        alpha: f64,
        direction: f64,
        gap_blocks: Vec<(f64, f64)>,
        prior: Vec<f64>,
    ) -> PyResult<Self> {
        if commits == 0 || !(prior.is_empty() || prior.len() == commits) {
            return Err(PyValueError::new_err(format!(
                "{} chances for {commits} commits: each commit needs a chance, or none has one",
                prior.len()
            )));
        }
        if !(alpha > 0.0 && alpha < 1.0) {
            return Err(PyValueError::new_err(format!(
                "alpha must be between 0 and 1, not {alpha}"
            )));
        }
        let inner = Search::new(&SearchSettings {
            commits,
            alpha,
            direction: direction.signum(),
            gap_blocks: &gap_blocks,
            prior: &prior,
        });
        Ok(Self { inner, commits })
    }

    fn add(
        &mut self,
        pair: (usize, usize),
        difference: f64,
        order: f64,
        tolerance: f64,
        number: usize,
        rank: usize,
    ) -> PyResult<bool> {
        let (before, after) = pair;
        if !(self.inner.can_run(before) && self.inner.can_run(after) && before < after) {
            return Err(PyValueError::new_err(format!(
                "({before}, {after}) is not a pair of an earlier and a later commit that both run"
            )));
        }
        let block = PairBlock {
            before,
            after,
            difference,
            order: order.signum(),
            tolerance,
        };
        Ok(self.inner.add(&block, number, rank))
    }

    fn withdraw(&mut self, commit: usize) -> PyResult<()> {
        if commit == 0 || commit >= self.commits || !self.inner.can_run(commit) {
            return Err(PyValueError::new_err(format!(
                "commit {commit} is not a commit that runs between the first and the last"
            )));
        }
        self.inner.withdraw(commit);
        Ok(())
    }

    fn choose(&self, built: Vec<usize>, trials: f64) -> (usize, usize) {
        let mut is_built = vec![false; self.commits + 1];
        for commit in built {
            if let Some(is_commit_built) = is_built.get_mut(commit) {
                *is_commit_built = true;
            }
        }
        self.inner.choose_pair(&is_built, trials)
    }

    fn outcome(&self) -> (&'static str, Option<(usize, usize)>, Option<usize>) {
        match self.inner.outcome() {
            Outcome::Open => ("open", None, None),
            Outcome::Culprit(group) => ("culprit", Some((group.before, group.after)), None),
            Outcome::Several { likeliest, split } => {
                let group = likeliest.map(|group| (group.before, group.after));
                ("several", group, Some(split))
            }
        }
    }

    fn ln_e_values(&self) -> Vec<f64> {
        self.inner.ln_e_values().to_vec()
    }

    fn excluded_at(&self) -> Vec<Option<usize>> {
        self.inner.excluded_at().to_vec()
    }

    fn weights(&self) -> Vec<f64> {
        self.inner.chances()
    }

    fn own_ln_e_value(&self, commit: usize) -> PyResult<f64> {
        if commit == 0 || commit > self.commits {
            return Err(PyValueError::new_err(format!(
                "there is no commit {commit}"
            )));
        }
        Ok(self.inner.own_ln_e_value(commit))
    }

    fn margin(&self) -> f64 {
        self.inner.margin()
    }

    fn step(&self) -> f64 {
        self.inner.step()
    }

    fn scale(&self) -> f64 {
        self.inner.scale()
    }
}
