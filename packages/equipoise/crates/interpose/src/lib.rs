//! Code that Equipoise's libraries for `LD_PRELOAD` share. Nothing here allocates or panics.
//!
//! - [`hooks`]: exports C functions, and calls the functions that they replace.
//! - [`errno`]: the error number of the calling thread.
//! - [`process`]: environment variables, and functions to call at the start and the end of the process.

pub mod errno;
pub mod hooks;
pub mod process;
