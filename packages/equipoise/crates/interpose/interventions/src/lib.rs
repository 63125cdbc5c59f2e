//! A library for `LD_PRELOAD` that changes one behaviour of a program (an intervention). So
//! `equipoise why` can see whether a difference in time disappears.
//!
//! `EQUIPOISE_INTERVENTION` names the change. Without it, or with `nothing`, each function only
//! calls the function that it replaces.
//!
//! Signatures and errors follow C17, POSIX.1-2017 and the Linux manual pages.
//!
//! - `intervention`: the name of the change.
//! - `files`: syncs that return at once, and files that stay in the page cache.
//! - `sleep`: sleeps that return at once.
//! - `streams`, `buffers`, `pending_output`: large buffers of standard I/O, written in time.
//! - `pages`, `ranges`: memory that is kept instead of given back, and huge pages.

// A test program does not export the functions, so nothing calls them there.
#![cfg_attr(test, allow(dead_code))]
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod buffers;
mod files;
mod intervention;
mod pages;
mod pending_output;
mod ranges;
mod sleep;
mod streams;

equipoise_interpose::at_load!(start);

fn start() {
    if intervention::current().has_large_buffers() {
        pending_output::write_before_forks();
        streams::enlarge_standard_streams();
    }
}
