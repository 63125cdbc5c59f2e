//! The common part of Equipoise's preloadable libraries. Nothing here allocates or panics.
//!
//! - [`hooks`]: exports C functions, and calls the functions that they replace.
//! - [`errno`]: the error number of the calling thread.
//! - [`process`]: the environment, the start and the end of the process.

pub mod errno;
pub mod hooks;
pub mod process;
