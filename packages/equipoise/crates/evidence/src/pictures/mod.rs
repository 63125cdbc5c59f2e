//! Draws pictures that compare the stacks of two conditions.
//!
//! - `flame_graph`: a differential flame graph.
//! - `firefox`: a profile for profiler.firefox.com.

pub mod firefox;
pub mod flame_graph;

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::stacks::folded::Frame;
use equipoise_reporting::problem::Problem;

/// Two conditions with the mean stacks of their runs, as Equipoise writes them.
#[derive(Debug, Deserialize)]
pub struct Conditions {
    pub baseline: Condition,
    pub candidate: Condition,
    pub slower: Side,
}

#[derive(Debug, Deserialize)]
pub struct Condition {
    pub name: String,
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack>,
}

#[derive(Debug, Deserialize)]
pub struct Stack {
    /// Indices into `frames` of the condition, the outermost first.
    pub frames: Vec<usize>,
    /// Mean seconds per run.
    pub seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Baseline,
    Candidate,
}

impl Conditions {
    /// Returns the faster and the slower condition.
    pub fn by_speed(&self) -> [&Condition; 2] {
        match self.slower {
            Side::Baseline => [&self.candidate, &self.baseline],
            Side::Candidate => [&self.baseline, &self.candidate],
        }
    }
}

/// Reads two conditions from a file. A stack with an undefined frame is an error.
pub fn read(file: &Path) -> Result<Conditions, Problem> {
    let path = file.display();
    let text = fs::read(file).map_err(Problem::system(&path.to_string()))?;
    let conditions: Conditions = serde_json::from_slice(&text).map_err(|error| {
        Problem::failure(format!("{path} does not contain two conditions: {error}"))
    })?;
    for condition in [&conditions.baseline, &conditions.candidate] {
        let frames = condition.frames.len();
        let mut indices = condition.stacks.iter().flat_map(|stack| &stack.frames);
        if let Some(missing) = indices.find(|index| **index >= frames) {
            return Err(Problem::failure(format!(
                "{path}: a stack of {} has frame {missing}, but there are only {frames} frames",
                condition.name
            )));
        }
    }
    Ok(conditions)
}
