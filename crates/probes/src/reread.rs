//! A file that was just written, so that it is read from memory.

use std::fs::File;
use std::io::Write;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::Parameter;
use crate::scratch::Scratch;
use crate::system::problem_of;

/// How large it is.
pub const FILE: Parameter = Parameter {
    words: "bytes of the file, in whole chunks of 64 KiB",
    default: 8 << 20,
    least: CHUNK as u64,
    most: 16 << 30,
};

/// What is read at a time.
pub const CHUNK: usize = 64 << 10;

/// Eight bytes of the file: the number of the chunk that they are in, counted from 1.
pub type Word = u64;

/// The file, which has no name any more.
///
/// # Errors
/// If it cannot be made, or the file system has no room.
pub fn written(asked: &Asked) -> Result<File, Problem> {
    let scratch = Scratch::new(asked)?;
    let in_folder = |error| problem_of("the file that is read again", &error);
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(scratch.path().join("file"))
        .map_err(in_folder)?;
    for chunk in 1..=chunks(asked) {
        let words = chunk.to_ne_bytes().repeat(CHUNK / size_of::<Word>());
        file.write_all(&words).map_err(in_folder)?;
    }
    Ok(file)
}

/// How many chunks it has.
pub fn chunks(asked: &Asked) -> u64 {
    asked.size / CHUNK as u64
}
