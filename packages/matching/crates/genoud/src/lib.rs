//! Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)) as a dialogue:
//! the search asks for values, a polished point or a gradient, and gets them.

mod domain;
mod individual;
mod operators;
mod options;
mod philox;
mod random;
mod search;
mod tausworthe;

pub use domain::{Boundary, Domain};
pub use individual::Individual;
pub use options::{Direction, OperatorCounts, Options, Unusable};
pub use philox::Philox;
pub use random::{Generator, Source};
pub use search::{Record, Search, Step, Stop};
pub use tausworthe::Tausworthe;
