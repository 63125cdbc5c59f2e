//! Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)) as a dialogue:
//! the search asks for values, a polished point or a gradient, and is told them.

mod breeding;
mod counts;
mod dialogue;
mod domain;
mod ending;
mod individual;
mod memory;
mod operators;
mod options;
mod philox;
mod random;
mod search;
mod tausworthe;

pub use counts::OperatorCounts;
pub use dialogue::{Record, Step};
pub use domain::{Boundary, Domain};
pub use ending::Stop;
pub use individual::Individual;
pub use options::{Direction, Options, Unusable};
pub use philox::Philox;
pub use random::{Generator, Source};
pub use search::Search;
pub use tausworthe::Tausworthe;
