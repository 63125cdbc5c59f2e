//! Probe `mmap_reread`: a file that is in memory, mapped, read through and unmapped.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::slice::from_raw_parts;

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::file_system::kind_of;
use crate::memory::added_up;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::reread::{CHUNK, FILE, Word, chunks, written};
use crate::system::{expect, refused, wrong};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "mmap_reread",
    class: Class::Files,
    words: "a file in the page cache that is mapped, added up and unmapped",
    metric: Metric::Bandwidth,
    placements: &[Placement::None],
    size: Some(FILE),
    count: None,
    needs: "a folder that can be written to",
    rows: &[Row::plain("mmap_reread")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let file = written(asked)?;
    let system = kind_of(&file)?;
    let chunks = chunks(asked);
    let bytes = chunks * CHUNK as u64;
    let words_in_a_chunk = (CHUNK / size_of::<Word>()) as u64;
    let expected = words_in_a_chunk * chunks * (chunks + 1) / 2;
    let opened = Opened::bandwidth(bytes, move |count| {
        timed(count, || {
            let sum = mapped_sum(&file, to_usize(bytes))?;
            if sum != expected {
                return Err(wrong("the sum", sum, expected));
            }
            Ok(())
        })
    });
    Ok(opened.with_fact("file_system", system))
}

fn mapped_sum(file: &File, bytes: usize) -> Result<u64, Problem> {
    let (mode, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping, at no particular address.
    let start = unsafe {
        libc::mmap(
            null_mut::<c_void>(),
            bytes,
            mode,
            flags,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(refused("mmap"));
    }
    // SAFETY: so many bytes are mapped there, of a file that nobody else knows, in whole pages.
    let words = unsafe { from_raw_parts(start.cast::<Word>(), bytes / size_of::<Word>()) };
    let sum = added_up(words);
    // SAFETY: exactly the mapping that was made; nothing points into it any more.
    expect("munmap", unsafe { libc::munmap(start, bytes) }, 0)?;
    Ok(sum)
}
