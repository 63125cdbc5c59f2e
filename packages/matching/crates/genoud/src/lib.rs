//! Genetic optimisation using derivatives (Mebane & Sekhon 2011, JSS 42(11)).
//!
//! The search asks the caller for the values of points. A candidate is a point with its values.
//! Operators make the points of the next generation from candidates. The caller may also polish
//! points: move each to a local optimum near it. `Philox` and `Tausworthe` are two generators of
//! random numbers, and a `Source` draws from one of them.

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
