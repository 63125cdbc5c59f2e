//! Stores records in a temporary file until the command has ended, so as not to disturb it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use equipoise_kernel::call::owned;
use equipoise_reporting::problem::Problem;

use crate::perf::record::{SAMPLE, time_of};
use crate::perf::rings::Rings;
use crate::profile::sampling::STACK_BYTES;

/// The stored records of all processors.
pub struct Spool {
    output: BufWriter<File>,
    written_bytes: u64,
    /// Time and position of each stored record.
    index: Vec<IndexEntry>,
    /// The error that ended the writing, and the time of the first record that was not written.
    write_error: Option<(io::Error, u64)>,
}

/// The early end of the stored records, because of an error.
pub struct Cut {
    pub error: io::Error,
    /// Time of the first record that is missing.
    pub ns: u64,
}

#[derive(Clone, Copy)]
struct IndexEntry {
    ns: u64,
    offset: u64,
    length: usize,
}

/// Returns a record without the unfilled bytes of its stack, in two parts.
fn without_unfilled_stack(record: &[u8]) -> [&[u8]; 2] {
    const SAMPLE_TYPE: [u8; 4] = SAMPLE.to_ne_bytes();
    const MAX_STACK_BYTES: usize = STACK_BYTES as usize;
    let split = || {
        // A sample ends with the space for the stack and the number of filled bytes.
        let (before, filled_bytes) = record.split_last_chunk::<8>()?;
        let stack_start = before.len().checked_sub(MAX_STACK_BYTES)?;
        let count = usize::try_from(u64::from_ne_bytes(*filled_bytes)).ok()?;
        (record.starts_with(&SAMPLE_TYPE) && count <= MAX_STACK_BYTES)
            .then(|| [&before[..stack_start + count], filled_bytes.as_slice()])
    };
    split().unwrap_or([record, &[]])
}

/// Name of the file in messages.
pub const FILE_DESCRIPTION: &str = "the temporary file of the records";

impl Spool {
    /// Returns an empty spool, in an unnamed file in the folder for temporary files.
    pub fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir();
        let folder = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes())
            .map_err(io::Error::other)?;
        let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the name of the folder ends with NUL, and open returns a new descriptor.
        let file = unsafe { owned(libc::open(folder.as_ptr(), flags, 0o600)) }?;
        Ok(Self {
            output: BufWriter::with_capacity(1 << 20, File::from(file)),
            written_bytes: 0,
            index: Vec::new(),
            write_error: None,
        })
    }

    /// Stores the new records, and passes them to `inspect`. After an error of the file, new
    /// records are not stored, and the command goes on.
    pub fn fill(&mut self, rings: &mut Rings, mut inspect: impl FnMut(&[u8])) {
        rings.drain(|_, record| {
            inspect(record);
            self.add(record);
        });
    }

    fn add(&mut self, record: &[u8]) {
        let Some(ns) = time_of(record) else { return };
        if self.write_error.is_some() {
            return;
        }
        let [first_part, second_part] = without_unfilled_stack(record);
        let length = first_part.len() + second_part.len();
        let written = self.output.write_all(first_part);
        if let Err(error) = written.and_then(|()| self.output.write_all(second_part)) {
            self.write_error = Some((error, ns));
            return;
        }
        self.index.push(IndexEntry {
            ns,
            offset: self.written_bytes,
            length,
        });
        self.written_bytes += length as u64;
    }

    /// Passes the stored records to `handle` in the order of their times; returns the cut, if any.
    pub fn replay(mut self, mut handle: impl FnMut(u64, &[u8])) -> Result<Option<Cut>, Problem> {
        let to_problem = Problem::system(FILE_DESCRIPTION);
        let mut write_error = self.write_error;
        if write_error.is_none() {
            write_error = self.output.flush().err().map(|error| (error, u64::MAX));
        }
        // If the disk was full, the file lacks the last records of the index.
        let (file, _) = self.output.into_parts();
        let length = file.metadata().map_err(to_problem)?.len();
        let is_stored = |entry: &IndexEntry| entry.offset + entry.length as u64 <= length;
        let missing = self.index.iter().filter(|entry| !is_stored(entry));
        let first_missing = missing.map(|entry| entry.ns).min().unwrap_or(u64::MAX);
        self.index.retain(is_stored);
        self.index.sort_by_key(|entry| entry.ns);
        let mut record = Vec::new();
        for entry in self.index {
            record.resize(entry.length, 0);
            file.read_exact_at(&mut record, entry.offset)
                .map_err(to_problem)?;
            handle(entry.ns, &record);
        }
        Ok(write_error.map(|(error, ns)| Cut {
            error,
            ns: ns.min(first_missing),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(filled_bytes: u64) -> Vec<u8> {
        let mut record = SAMPLE.to_ne_bytes().to_vec();
        record.extend([7; 60]);
        record.extend(vec![1; STACK_BYTES as usize]);
        record.extend(filled_bytes.to_ne_bytes());
        record
    }

    #[test]
    fn the_unfilled_part_of_a_stack_is_not_stored() {
        let record = sample(100);
        let [first_part, second_part] = without_unfilled_stack(&record);
        assert_eq!(first_part, &record[..64 + 100]);
        assert_eq!(second_part, 100_u64.to_ne_bytes());
    }

    #[test]
    fn records_without_a_valid_stack_are_stored_completely() {
        let mut other = sample(100);
        other[0] = 10;
        assert_eq!(without_unfilled_stack(&other)[0], other);
        assert_eq!(without_unfilled_stack(&other[..40])[0], &other[..40]);
        let unfilled = sample(u64::MAX);
        assert_eq!(without_unfilled_stack(&unfilled)[0], unfilled);
    }
}
