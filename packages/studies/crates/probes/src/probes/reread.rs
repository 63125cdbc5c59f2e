//! `file_reread`, `mmap_reread`: read a file from the page cache.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::null_mut;
use std::slice::from_raw_parts;

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::memory::wrapping_sum;
use crate::probe::{Class, OpenProbe, Parameter, Probe, ProbeOptions, timed};
use crate::scratch::{Scratch, file_system_of};
use crate::system::{check_result, last_problem, problem_of, wrong_result};

pub const FILE_REREAD: Probe = Probe {
    name: "file_reread",
    summary: "a file in the page cache that is read by pread, 64 KiB at a time",
    size: Some(FILE_SIZE),
    needs: "a folder that can be written to",
    ..Probe::bandwidth(Class::Files, open_file_reread)
};

fn open_file_reread(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file = write_file(options)?;
    let file_system = file_system_of(&file)?;
    let chunk_count = chunk_count(options);
    let mut buffer = vec![0; CHUNK_BYTES];
    let probe = OpenProbe::bandwidth(chunk_count * CHUNK_BYTES as u64, move |count| {
        timed(count, || {
            (0..chunk_count).try_for_each(|chunk| read_chunk(&file, chunk, &mut buffer))
        })
    });
    Ok(probe.with_fact("file_system", file_system))
}

fn read_chunk(file: &File, chunk: u64, buffer: &mut [u8]) -> Result<(), Problem> {
    let bytes = file
        .read_at(buffer, chunk * CHUNK_BYTES as u64)
        .map_err(problem_of("pread"))?;
    if bytes != CHUNK_BYTES {
        return Err(wrong_result("pread", bytes, CHUNK_BYTES));
    }
    let last_word = buffer
        .last_chunk()
        .map_or(0, |word| Word::from_ne_bytes(*word));
    if last_word != chunk + 1 {
        return Err(wrong_result("the chunk", last_word, chunk + 1));
    }
    Ok(())
}

pub const MMAP_REREAD: Probe = Probe {
    name: "mmap_reread",
    summary: "a file in the page cache that is mapped, added up and unmapped",
    size: Some(FILE_SIZE),
    needs: "a folder that can be written to",
    ..Probe::bandwidth(Class::Files, open_mmap_reread)
};

fn open_mmap_reread(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file = write_file(options)?;
    let file_system = file_system_of(&file)?;
    let chunk_count = chunk_count(options);
    let bytes = chunk_count * CHUNK_BYTES as u64;
    let words_per_chunk = (CHUNK_BYTES / size_of::<Word>()) as u64;
    let expected = words_per_chunk * chunk_count * (chunk_count + 1) / 2;
    let probe = OpenProbe::bandwidth(bytes, move |count| {
        timed(count, || {
            let sum = mapped_sum(&file, to_usize(bytes))?;
            if sum != expected {
                return Err(wrong_result("the sum", sum, expected));
            }
            Ok(())
        })
    });
    Ok(probe.with_fact("file_system", file_system))
}

fn mapped_sum(file: &File, bytes: usize) -> Result<u64, Problem> {
    let (mode, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    // SAFETY: a new mapping, at any address.
    let start = unsafe { libc::mmap(null_mut(), bytes, mode, flags, file.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(last_problem("mmap"));
    }
    // SAFETY: whole pages of `bytes` bytes are mapped; no other process has the file open.
    let words = unsafe { from_raw_parts(start.cast::<Word>(), bytes / size_of::<Word>()) };
    let sum = wrapping_sum(words);
    // SAFETY: exactly the mapping from above, and no reference to it remains.
    check_result("munmap", unsafe { libc::munmap(start, bytes) }, 0)?;
    Ok(sum)
}

pub const FILE_SIZE: Parameter = Parameter {
    summary: "bytes of the file, in whole chunks of 64 KiB",
    default: 8 << 20,
    minimum: CHUNK_BYTES as u64,
    maximum: 16 << 30,
};

/// Number of bytes that each call reads.
pub const CHUNK_BYTES: usize = 64 << 10;
/// A word of the file. Its value is the number, from 1, of the chunk that contains it.
pub type Word = u64;

/// Writes the file, and removes its name.
fn write_file(options: &ProbeOptions) -> Result<File, Problem> {
    let scratch = Scratch::new(options)?;
    let problem = problem_of("the file that is read again");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(scratch.path().join("file"))
        .map_err(problem)?;
    for chunk in 1..=chunk_count(options) {
        let words = chunk.to_ne_bytes().repeat(CHUNK_BYTES / size_of::<Word>());
        file.write_all(&words).map_err(problem)?;
    }
    Ok(file)
}

/// Returns the number of chunks of the file.
pub fn chunk_count(options: &ProbeOptions) -> u64 {
    options.size / CHUNK_BYTES as u64
}
