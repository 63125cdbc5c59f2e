//! `file_reread`, `mmap_reread`: a file that was just written, read from memory.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;
use std::slice::from_raw_parts;

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::memory::added_up;
use crate::probe::{Class, OpenProbe, Parameter, Probe, ProbeOptions, timed};
use crate::scratch::{Scratch, kind_of};
use crate::system::{expect, problem_of, refused, wrong};

pub const FILE_REREAD: Probe = Probe {
    name: "file_reread",
    summary: "a file in the page cache that is read by pread, 64 KiB at a time",
    size: Some(FILE),
    needs: "a folder that can be written to",
    ..Probe::bandwidth(Class::Files, open_file_reread)
};

fn open_file_reread(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file = write_file(options)?;
    let system = kind_of(&file)?;
    let chunks = chunks(options);
    let mut room = vec![0; CHUNK];
    let opened = OpenProbe::bandwidth(chunks * CHUNK as u64, move |count| {
        timed(count, || {
            (0..chunks).try_for_each(|chunk| read_chunk(&file, chunk, &mut room))
        })
    });
    Ok(opened.with_fact("file_system", system))
}

fn read_chunk(file: &File, chunk: u64, room: &mut [u8]) -> Result<(), Problem> {
    let bytes = file
        .read_at(room, chunk * CHUNK as u64)
        .map_err(problem_of("pread"))?;
    if bytes != CHUNK {
        return Err(wrong("pread", bytes, CHUNK));
    }
    let number = room
        .last_chunk()
        .map_or(0, |word| Word::from_ne_bytes(*word));
    if number != chunk + 1 {
        return Err(wrong("the chunk", number, chunk + 1));
    }
    Ok(())
}

pub const MMAP_REREAD: Probe = Probe {
    name: "mmap_reread",
    summary: "a file in the page cache that is mapped, added up and unmapped",
    size: Some(FILE),
    needs: "a folder that can be written to",
    ..Probe::bandwidth(Class::Files, open_mmap_reread)
};

fn open_mmap_reread(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file = write_file(options)?;
    let system = kind_of(&file)?;
    let chunks = chunks(options);
    let bytes = chunks * CHUNK as u64;
    let words_in_a_chunk = (CHUNK / size_of::<Word>()) as u64;
    let expected = words_in_a_chunk * chunks * (chunks + 1) / 2;
    let opened = OpenProbe::bandwidth(bytes, move |count| {
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
    let start = unsafe { libc::mmap(null_mut(), bytes, mode, flags, file.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(refused("mmap"));
    }
    // SAFETY: `bytes` bytes, whole pages, are mapped there; no other process has the file open.
    let words = unsafe { from_raw_parts(start.cast::<Word>(), bytes / size_of::<Word>()) };
    let sum = added_up(words);
    // SAFETY: exactly the mapping that was made; nothing points into it any more.
    expect("munmap", unsafe { libc::munmap(start, bytes) }, 0)?;
    Ok(sum)
}

/// Parameter of the length of the file.
pub const FILE: Parameter = Parameter {
    summary: "bytes of the file, in whole chunks of 64 KiB",
    default: 8 << 20,
    minimum: CHUNK as u64,
    maximum: 16 << 30,
};

/// Bytes that are read at a time.
pub const CHUNK: usize = 64 << 10;

/// Eight bytes of the file: the number of the chunk that they are in, counted from 1.
pub type Word = u64;

/// Writes the file, and removes its name.
fn write_file(options: &ProbeOptions) -> Result<File, Problem> {
    let scratch = Scratch::new(options)?;
    let in_folder = problem_of("the file that is read again");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(scratch.path().join("file"))
        .map_err(in_folder)?;
    for chunk in 1..=chunks(options) {
        let words = chunk.to_ne_bytes().repeat(CHUNK / size_of::<Word>());
        file.write_all(&words).map_err(in_folder)?;
    }
    Ok(file)
}

/// Returns the number of chunks of the file.
pub fn chunks(options: &ProbeOptions) -> u64 {
    options.size / CHUNK as u64
}
