//! What every preloadable library of Equipoise needs. Nothing here allocates or panics.
//!
//! - [`hooks`]: exports C functions, and calls the functions that they stand before.
//! - [`errno`]: the error number of the calling thread.
//! - [`process`]: the environment, the start and the end of the process.

pub mod errno;
pub mod hooks;
pub mod process;
