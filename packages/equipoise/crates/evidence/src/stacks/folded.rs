//! Adds up the weights of equal stacks.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    pub name: String,
    /// Name of the function's program or library, without the folder.
    pub module: String,
    pub kind: Kind,
}

/// Origin of a frame's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    User,
    /// A function that was inlined into its caller.
    Inlined,
    Python,
    /// Code that a program generated, with the name from its map file.
    Generated,
    /// An entry point of the kernel.
    Kernel,
    /// Not code, but the size of an allocated block.
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

/// Different stacks, with the sum of the weights of each.
#[derive(Debug, Default)]
pub struct FoldedStacks {
    indices: HashMap<Frame, usize>,
    distinct_frames: Vec<Frame>,
    stacks: HashMap<Vec<usize>, StackSum>,
}

#[derive(Debug, Default, Clone, Copy)]
struct StackSum {
    samples: u64,
    weight: f64,
}

/// The stacks in the JSON document.
#[derive(Debug, Serialize)]
pub struct Stacks {
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack>,
}

#[derive(Debug, Serialize)]
pub struct Stack {
    /// Indices into `frames` of the document, the outermost first.
    pub frames: Vec<usize>,
    pub samples: u64,
    pub weight: f64,
}

impl Stacks {
    pub fn weight(&self) -> f64 {
        self.stacks.iter().map(|stack| stack.weight).sum()
    }
}

impl FoldedStacks {
    /// Adds a sample; its outermost frame comes first.
    pub fn add(&mut self, frames: impl IntoIterator<Item = Frame>, weight: f64) {
        let indices = frames.into_iter().map(|frame| self.index(frame)).collect();
        let sum = self.stacks.entry(indices).or_default();
        sum.samples += 1;
        sum.weight += weight;
    }

    fn index(&mut self, frame: Frame) -> usize {
        *self.indices.entry(frame).or_insert_with_key(|frame| {
            self.distinct_frames.push(frame.clone());
            self.distinct_frames.len() - 1
        })
    }

    /// Returns the stacks in the order of their weights, the heaviest first.
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
            frames: self.distinct_frames,
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
    fn the_weights_of_equal_stacks_are_added_up() {
        let mut folded = FoldedStacks::default();
        folded.add([frame("main"), frame("a")], 1.0);
        folded.add([frame("main"), frame("b")], 5.0);
        folded.add([frame("main"), frame("a")], 2.0);
        let stacks = folded.finish();
        assert_eq!(stacks.frames.len(), 3);
        let heaviest = stacks.stacks.into_iter();
        let heaviest: Vec<_> = heaviest.map(|sum| (sum.frames, sum.samples)).collect();
        assert_eq!(heaviest, [(vec![0, 2], 1), (vec![0, 1], 2)]);
    }
}
