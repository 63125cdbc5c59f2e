//! Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)).
//!
//! The search asks the caller for the values of points. A candidate is a point with its values.
//! `Philox` and `Tausworthe` generate random numbers, and a `Source` draws from one of them.

mod candidate;
mod domain;
mod operators;
mod options;
mod philox;
mod random;
mod search;
mod tausworthe;

pub use candidate::Candidate;
pub use domain::{Boundary, Domain};
pub use options::{Direction, OperatorCounts, Options, SearchError};
pub use philox::Philox;
pub use random::{Generator, Source};
pub use search::{GenerationRecord, Search, Step, Stop};
pub use tausworthe::Tausworthe;
