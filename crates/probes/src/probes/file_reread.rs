//! Probe `file_reread`: a file that is in memory, read 64 KiB at a time.

use std::fs::File;
use std::os::unix::fs::FileExt;

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::file_system::kind_of;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row, timed};
use crate::reread::{CHUNK, FILE, Word, chunks, written};
use crate::system::{problem_of, wrong};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "file_reread",
    class: Class::Files,
    words: "a file in the page cache that is read by pread, 64 KiB at a time",
    metric: Metric::Bandwidth,
    placements: &[Placement::None],
    size: Some(FILE),
    count: None,
    needs: "a folder that can be written to",
    rows: &[Row::plain("file_reread")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let file = written(asked)?;
    let system = kind_of(&file)?;
    let chunks = chunks(asked);
    let mut room = vec![0; CHUNK];
    let opened = Opened::bandwidth(chunks * CHUNK as u64, move |count| {
        timed(count, || {
            (0..chunks).try_for_each(|chunk| read_chunk(&file, chunk, &mut room))
        })
    });
    Ok(opened.with_fact("file_system", system))
}

fn read_chunk(file: &File, chunk: u64, room: &mut [u8]) -> Result<(), Problem> {
    let bytes = file
        .read_at(room, chunk * CHUNK as u64)
        .map_err(|error| problem_of("pread", &error))?;
    if bytes != CHUNK {
        return Err(wrong("pread", bytes, CHUNK));
    }
    let mut word = [0; size_of::<Word>()];
    word.copy_from_slice(&room[CHUNK - size_of::<Word>()..]);
    match Word::from_ne_bytes(word) {
        number if number == chunk + 1 => Ok(()),
        number => Err(wrong("the chunk", number, chunk + 1)),
    }
}
