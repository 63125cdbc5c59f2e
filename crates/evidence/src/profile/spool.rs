//! Records in a file until the command has ended: to make sense of them would disturb it.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use crate::command;
use crate::perf::record::time_of;
use crate::perf::rings::Rings;
use crate::problem::Problem;
use crate::profile::STACK_BYTES;

/// Records of all processors.
pub struct Spool {
    output: BufWriter<File>,
    written: u64,
    index: Vec<Place>,
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
    let whole = [record, &[]];
    if !record.starts_with(&SAMPLE) {
        return whole;
    }
    // At the end: the room, and how many bytes of it were filled.
    let Some((before, filled)) = record.split_last_chunk::<8>() else {
        return whole;
    };
    let Some(start) = before.len().checked_sub(ROOM) else {
        return whole;
    };
    match usize::try_from(u64::from_ne_bytes(*filled)) {
        Ok(count) if count <= ROOM => [&before[..start + count], filled],
        _ => whole,
    }
}

const FILE: &str = "the temporary file of the records";

impl Spool {
    /// An empty one, in a file without a name.
    ///
    /// # Errors
    /// No such file can be made in the folder for temporary files.
    pub fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir();
        let folder = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes())
            .map_err(io::Error::other)?;
        let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the folder's name is NUL-terminated.
        let descriptor = unsafe { libc::open(folder.as_ptr(), flags, 0o600) };
        Ok(Self {
            output: BufWriter::with_capacity(
                1 << 20,
                File::from(command::owned(libc::c_long::from(descriptor))?),
            ),
            written: 0,
            index: Vec::new(),
        })
    }

    /// Takes what has come.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn fill(&mut self, rings: &mut Rings) -> Result<(), Problem> {
        let mut failed = None;
        rings.drain(|_, record| {
            if let Some(ns) = time_of(record)
                && failed.is_none()
            {
                let [begin, end] = used(record);
                let length = begin.len() + end.len();
                self.index.push(Place {
                    ns,
                    offset: self.written,
                    length,
                });
                self.written += length as u64;
                let written = self.output.write_all(begin);
                failed = written.and_then(|()| self.output.write_all(end)).err();
            }
        });
        failed.map_or(Ok(()), |error| Err(Problem::system(FILE, &error)))
    }

    /// Hands the records over in the order of their times.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn replay(mut self, mut take: impl FnMut(u64, &[u8])) -> Result<(), Problem> {
        let refused = |error: &io::Error| Problem::system(FILE, error);
        self.output.flush().map_err(|error| refused(&error))?;
        let mut file = self
            .output
            .into_inner()
            .map_err(|error| refused(error.error()))?;
        self.index.sort_by_key(|place| place.ns);
        let mut record = Vec::new();
        for place in self.index {
            record.resize(place.length, 0);
            file.seek(SeekFrom::Start(place.offset))
                .and_then(|_| file.read_exact(&mut record))
                .map_err(|error| refused(&error))?;
            take(place.ns, &record);
        }
        Ok(())
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
