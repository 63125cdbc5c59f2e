//! Stacks with weights, added up.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    pub name: String,
    /// The file that it is in, without its folder.
    pub module: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    User,
    /// Inlined into its caller.
    Inlined,
    Python,
    /// Generated code, named by the program that generated it.
    #[serde(rename = "told")]
    Generated,
    /// Entry point of the kernel.
    Kernel,
    /// Size of the allocated block.
    Size,
    Unknown,
}

impl Frame {
    pub fn new(name: &str, module: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            module: module.to_owned(),
            kind,
        }
    }

    pub fn unknown(module: &str) -> Self {
        Self::new("(unknown)", module, Kind::Unknown)
    }
}

/// Stacks, each once.
#[derive(Debug, Default)]
pub struct Folded {
    frames: HashMap<Frame, usize>,
    order: Vec<Frame>,
    stacks: HashMap<Vec<usize>, Sum>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    samples: u64,
    weight: f64,
}

/// The document's part.
#[derive(Debug, Serialize)]
pub struct Stacks {
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack>,
}

#[derive(Debug, Serialize)]
pub struct Stack {
    /// Places in `frames`, the outermost first.
    pub frames: Vec<usize>,
    pub samples: u64,
    pub weight: f64,
}

impl Stacks {
    /// The sum of all weights.
    pub fn weight(&self) -> f64 {
        self.stacks.iter().map(|stack| stack.weight).sum()
    }
}

impl Folded {
    /// Adds one sample, its frames outermost first.
    pub fn add(&mut self, frames: impl IntoIterator<Item = Frame>, weight: f64) {
        let places = frames.into_iter().map(|frame| self.place(frame)).collect();
        let sum = self.stacks.entry(places).or_default();
        sum.samples += 1;
        sum.weight += weight;
    }

    fn place(&mut self, frame: Frame) -> usize {
        *self.frames.entry(frame).or_insert_with_key(|frame| {
            self.order.push(frame.clone());
            self.order.len() - 1
        })
    }

    /// All of them, the heaviest first.
    pub fn finish(self) -> Stacks {
        let mut stacks: Vec<_> = self
            .stacks
            .into_iter()
            .map(|(frames, sum)| Stack {
                frames,
                samples: sum.samples,
                weight: sum.weight,
            })
            .collect();
        stacks.sort_by(|first, second| {
            let by_weight = second.weight.total_cmp(&first.weight);
            by_weight.then_with(|| first.frames.cmp(&second.frames))
        });
        Stacks {
            frames: self.order,
            stacks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str) -> Frame {
        Frame::new(name, "program", Kind::User)
    }

    #[test]
    fn equal_stacks_are_one_with_the_sum_of_their_weights() {
        let mut folded = Folded::default();
        folded.add([frame("main"), frame("a")], 1.0);
        folded.add([frame("main"), frame("b")], 5.0);
        folded.add([frame("main"), frame("a")], 2.0);
        let done = folded.finish();
        assert_eq!(done.frames.len(), 3);
        let stacks = done.stacks.into_iter();
        let heaviest: Vec<_> = stacks.map(|stack| (stack.frames, stack.samples)).collect();
        assert_eq!(heaviest, [(vec![0, 2], 1), (vec![0, 1], 2)]);
    }
}
