//! What a search asks for, and what it tells of its generations.

use crate::ending::Stop;
use crate::individual::Individual;

/// What the search needs next. Points stand one after another.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The values of these points: [`crate::Search::tell`].
    Evaluate(Vec<Vec<f64>>),
    /// What a local optimiser makes of these points: [`crate::Search::tell_polished`].
    Polish(Vec<Vec<f64>>),
    /// Whether the gradient at this point is small: [`crate::Search::tell_gradient`].
    Gradient(Vec<f64>),
    /// Nothing any more.
    Done(Stop),
}

/// What a generation has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// From 0, the random one.
    pub generation: usize,
    /// Its best individual.
    pub best: Individual,
    /// The first criterion of the middle individual.
    pub median: f64,
    /// How many points were asked for so far, those of the local optimiser left out.
    pub evaluations: usize,
}
