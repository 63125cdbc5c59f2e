//! Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)). The search returns
//! the next step, for instance points to evaluate, and the caller gives it the answer.

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
pub use options::{Direction, OperatorCounts, Options, SearchError};
pub use philox::Philox;
pub use random::{Generator, Source};
pub use search::{GenerationRecord, Search, Step, Stop};
pub use tausworthe::Tausworthe;
