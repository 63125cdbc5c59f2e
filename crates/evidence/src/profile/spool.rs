//! Records in a file until the command has ended: to make sense of them would disturb it.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use crate::command;
use crate::perf::record::time_of;
use crate::perf::rings::Rings;
use crate::problem::Problem;

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
                self.index.push(Place {
                    ns,
                    offset: self.written,
                    length: record.len(),
                });
                self.written += record.len() as u64;
                failed = self.output.write_all(record).err();
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
