//! Records in a file until the command has ended: to make sense of them would disturb it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use equipoise_kernel::call::owned;
use equipoise_reporting::problem::Problem;

use crate::perf::record::time_of;
use crate::perf::rings::Rings;
use crate::profile::sampling::STACK_BYTES;

/// Records of all processors.
pub struct Spool {
    output: BufWriter<File>,
    written: u64,
    index: Vec<Place>,
    /// Why the file takes no more, and the time of the first record that it did not take.
    ended: Option<(io::Error, u64)>,
}

/// Time and reason at which the records of a spool end before the command.
pub struct Cut {
    pub error: io::Error,
    /// Time of the first record that is missing.
    pub ns: u64,
}

#[derive(Clone, Copy)]
struct Place {
    ns: u64,
    offset: u64,
    length: usize,
}

/// A sample without the room for a stack that was not filled: most stacks are not so deep.
fn used(record: &[u8]) -> [&[u8]; 2] {
    const SAMPLE: [u8; 4] = 9_u32.to_ne_bytes();
    const ROOM: usize = STACK_BYTES as usize;
    let split = || {
        // At the end: the room, and how many bytes of it were filled.
        let (before, filled) = record.split_last_chunk::<8>()?;
        let start = before.len().checked_sub(ROOM)?;
        let count = usize::try_from(u64::from_ne_bytes(*filled)).ok()?;
        (record.starts_with(&SAMPLE) && count <= ROOM)
            .then(|| [&before[..start + count], filled.as_slice()])
    };
    split().unwrap_or([record, &[]])
}

pub const FILE: &str = "the temporary file of the records";

impl Spool {
    /// Makes an empty spool, in a file without a name in the folder for temporary files.
    pub fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir();
        let folder = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes())
            .map_err(io::Error::other)?;
        let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the name of the folder ends with NUL, and open returns a new descriptor.
        let file = unsafe { owned(libc::open(folder.as_ptr(), flags, 0o600)) }?;
        Ok(Self {
            output: BufWriter::with_capacity(1 << 20, File::from(file)),
            written: 0,
            index: Vec::new(),
            ended: None,
        })
    }

    /// Takes the records that have come, and shows them to `look`. A file that cannot be written
    /// does not end the command: from then on records are dropped.
    pub fn fill(&mut self, rings: &mut Rings, mut look: impl FnMut(&[u8])) {
        rings.drain(|_, record| {
            look(record);
            self.add(record);
        });
    }

    fn add(&mut self, record: &[u8]) {
        let Some(ns) = time_of(record) else { return };
        if self.ended.is_some() {
            return;
        }
        let [begin, end] = used(record);
        let length = begin.len() + end.len();
        let written = self.output.write_all(begin);
        if let Err(error) = written.and_then(|()| self.output.write_all(end)) {
            self.ended = Some((error, ns));
            return;
        }
        self.index.push(Place {
            ns,
            offset: self.written,
            length,
        });
        self.written += length as u64;
    }

    /// Passes the records on in the order of their times. Returns where they end, if that is before
    /// the last one that came.
    pub fn replay(mut self, mut take: impl FnMut(u64, &[u8])) -> Result<Option<Cut>, Problem> {
        let refused = Problem::system(FILE);
        let mut ended = self.ended;
        if ended.is_none() {
            ended = self.output.flush().err().map(|error| (error, u64::MAX));
        }
        // The rest of the buffer did not fit on the disk.
        let (file, _) = self.output.into_parts();
        let length = file.metadata().map_err(refused)?.len();
        let is_there = |place: &Place| place.offset + place.length as u64 <= length;
        let missing = self.index.iter().filter(|place| !is_there(place));
        let first_missing = missing.map(|place| place.ns).min().unwrap_or(u64::MAX);
        self.index.retain(is_there);
        self.index.sort_by_key(|place| place.ns);
        let mut record = Vec::new();
        for place in self.index {
            record.resize(place.length, 0);
            file.read_exact_at(&mut record, place.offset)
                .map_err(refused)?;
            take(place.ns, &record);
        }
        Ok(ended.map(|(error, ns)| Cut {
            error,
            ns: ns.min(first_missing),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(filled: u64) -> Vec<u8> {
        let mut record = 9_u32.to_ne_bytes().to_vec();
        record.extend([7; 60]);
        record.extend(vec![1; STACK_BYTES as usize]);
        record.extend(filled.to_ne_bytes());
        record
    }

    #[test]
    fn room_that_was_not_filled_is_left_out() {
        let record = sample(100);
        let [begin, end] = used(&record);
        assert_eq!(begin, &record[..64 + 100]);
        assert_eq!(end, 100_u64.to_ne_bytes());
    }

    #[test]
    fn what_is_no_sample_with_a_stack_stays_as_it_is() {
        let mut other = sample(100);
        other[0] = 10;
        assert_eq!(used(&other)[0], other);
        assert_eq!(used(&other[..40])[0], &other[..40]);
        let unfilled = sample(u64::MAX);
        assert_eq!(used(&unfilled)[0], unfilled);
    }
}
