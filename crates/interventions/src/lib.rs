//! Changes one thing of a program, so that `equipoise why` can see whether a gap goes: a library
//! for `LD_PRELOAD`. `EQUIPOISE_INTERVENTION` says which; without it, or with `nothing`, each
//! function calls the one that would be called without this library.
//!
//! Signatures and errors as in C17, POSIX.1-2017 and the Linux manual pages.

// In a test program these names would replace those of the test harness itself.
#![cfg_attr(test, allow(dead_code))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod buffers;
mod cache;
mod chosen;
mod errno;
mod leaving;
mod next;
mod pages;
mod ranges;
mod sleep;
mod streams;
mod sync;

#[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
#[used]
static WHEN_LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        streams::begin();
    }
    loaded
};
