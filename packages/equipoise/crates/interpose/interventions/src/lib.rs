//! Changes one thing of a program, so that `equipoise why` can see whether a gap closes: a library
//! for `LD_PRELOAD`. `EQUIPOISE_INTERVENTION` names the change. Without it, or with `nothing`, each
//! function calls the one that would be called without this library.
//!
//! Signatures and errors follow C17, POSIX.1-2017 and the Linux manual pages.
//!
//! - `intervention`: which change the process was given.
//! - `files`: quick syncs, and files that stay in the page cache.
//! - `sleep`: sleeps that return at once.
//! - `streams`, `buffers`, `leaving`: large buffers of standard I/O, written in time.
//! - `pages`, `ranges`: memory that is kept instead of given back, and huge pages.

// In a test program these names would replace those of the test harness itself.
#![cfg_attr(test, allow(dead_code))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod buffers;
mod files;
mod intervention;
mod leaving;
mod pages;
mod ranges;
mod sleep;
mod streams;

equipoise_interpose::at_load!(loaded);

fn loaded() {
    if intervention::current().has_large_buffers() {
        leaving::watch_forks();
        streams::enlarge_standard_streams();
    }
}
