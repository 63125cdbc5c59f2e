//! The stacks of both conditions, as the Python side hands them over.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::problem::Problem;
use crate::stacks::folded::Frame;

/// Two conditions, with stacks of means over their runs.
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
    /// Places in `frames`, the outermost first.
    pub frames: Vec<usize>,
    pub seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    Baseline,
    Candidate,
}

impl Conditions {
    pub fn slower(&self) -> &Condition {
        match self.slower {
            Side::Baseline => &self.baseline,
            Side::Candidate => &self.candidate,
        }
    }

    pub fn faster(&self) -> &Condition {
        match self.slower {
            Side::Baseline => &self.candidate,
            Side::Candidate => &self.baseline,
        }
    }
}

/// Reads them.
///
/// # Errors
/// The file cannot be read, is something else, or has a stack with a frame that is not there.
pub fn read(file: &Path) -> Result<Conditions, Problem> {
    let place = file.display();
    let text = fs::read(file).map_err(|error| Problem::system(&place.to_string(), &error))?;
    let read: Conditions = serde_json::from_slice(&text)
        .map_err(|error| Problem::failure(format!("{place} holds no two conditions: {error}")))?;
    for condition in [&read.baseline, &read.candidate] {
        let frames = condition.frames.len();
        let mut places = condition.stacks.iter().flat_map(|stack| &stack.frames);
        if let Some(missing) = places.find(|place| **place >= frames) {
            return Err(Problem::failure(format!(
                "{place}: {} has a stack with frame {missing} of {frames}",
                condition.name
            )));
        }
    }
    Ok(read)
}
