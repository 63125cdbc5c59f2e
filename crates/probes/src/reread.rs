//! A file that was just written, so that it is read from memory.

use std::env::temp_dir;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::Parameter;
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

/// A file that never has a name, so that nothing can be left behind.
///
/// # Errors
/// If the folder's file system has no such files, or has no room.
pub fn written(asked: &Asked) -> Result<File, Problem> {
    let folder = asked.folder.clone().unwrap_or_else(temp_dir);
    let in_folder = |error| problem_of(&format!("a file in {}", folder.display()), &error);
    let mut file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_TMPFILE)
        .open(&folder)
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
