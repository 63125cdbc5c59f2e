//! `file_create`, `file_delete`: create and delete files in a new folder.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::probe::{Class, OpenProbe, Parameter, Probe, ProbeOptions, Row, rounds};
use crate::scratch::{Scratch, file_system_of};
use crate::system::{check_negative, check_result};

pub const FILE_CREATE: Probe = Probe {
    name: "file_create",
    summary: "openat of a new file, write of its bytes (none, 10 KiB), close",
    size: Some(FILE_SIZE),
    needs: "a folder that can be written to",
    rows: &[
        Row::named("_0k").of_size(0),
        Row::named("_10k").of_size(10 << 10),
    ],
    ..Probe::latency(Class::Files, |options| {
        open(options, |times| times.creating)
    })
};

pub const FILE_DELETE: Probe = Probe {
    name: "file_delete",
    summary: "unlinkat of a file (of 0 bytes, of 10 KiB) that was made just before",
    size: Some(FILE_SIZE),
    needs: "a folder that can be written to",
    rows: &[
        Row::named("_0k").of_size(0),
        Row::named("_10k").of_size(10 << 10),
    ],
    ..Probe::latency(Class::Files, |options| {
        open(options, |times| times.deleting)
    })
};

fn open(options: &ProbeOptions, time_of: fn(Times) -> Duration) -> Result<OpenProbe, Problem> {
    let files = NewFiles::new(options)?;
    let file_system = file_system_of(&files.folder)?;
    let probe = OpenProbe::latency(move |count| files.create_and_delete(count).map(time_of));
    Ok(probe.with_fact("file_system", file_system))
}

pub const FILE_SIZE: Parameter = Parameter {
    summary: "bytes that are written to each file",
    default: 0,
    minimum: 0,
    maximum: 1 << 20,
};
/// Number of files that are created before the first is deleted.
const FILES_PER_ROUND: u64 = 256;

/// The total times for all files of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Time to open with `O_CREAT`, write and close.
    pub creating: Duration,
    pub deleting: Duration,
}

/// The folder, the names and the content of the files.
pub struct NewFiles {
    folder: File,
    names: Vec<CString>,
    content: Vec<u8>,
    _scratch: Scratch,
}

impl NewFiles {
    fn new(options: &ProbeOptions) -> Result<Self, Problem> {
        let scratch = Scratch::new(options)?;
        Ok(Self {
            folder: scratch.open()?,
            names: (0..FILES_PER_ROUND)
                .map(|number| CString::new(number.to_string()).expect("digits"))
                .collect(),
            content: vec![b'x'; to_usize(options.size)],
            _scratch: scratch,
        })
    }

    /// Creates and deletes `count` files, in rounds of `FILES_PER_ROUND`.
    fn create_and_delete(&self, count: u64) -> Result<Times, Problem> {
        let mut times = Times::default();
        for files in rounds(count, FILES_PER_ROUND) {
            let names = &self.names[..to_usize(files)];
            let started = Instant::now();
            names.iter().try_for_each(|name| self.create(name))?;
            let created = Instant::now();
            names.iter().try_for_each(|name| self.delete(name))?;
            times.deleting += created.elapsed();
            times.creating += created - started;
        }
        Ok(times)
    }

    #[inline]
    fn create(&self, name: &CString) -> Result<(), Problem> {
        const OPTIONS: libc::c_int = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
        const MODE: libc::c_uint = 0o600;
        let folder = self.folder.as_raw_fd();
        // SAFETY: the name ends with a null byte.
        let descriptor = unsafe { libc::openat(folder, name.as_ptr(), OPTIONS, MODE) };
        let descriptor = check_negative("openat", descriptor)?;
        // SAFETY: a new descriptor without another owner; closed on every return.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
        if !self.content.is_empty() {
            let (start, bytes) = (self.content.as_ptr().cast(), self.content.len());
            // SAFETY: the content is valid for reading over its length.
            let written = unsafe { libc::write(file.as_raw_fd(), start, bytes) };
            check_result("write", written, bytes.cast_signed())?;
        }
        let descriptor = std::os::fd::IntoRawFd::into_raw_fd(file);
        // SAFETY: the owner has just released the descriptor.
        check_result("close", unsafe { libc::close(descriptor) }, 0)
    }

    #[inline]
    fn delete(&self, name: &CString) -> Result<(), Problem> {
        // SAFETY: the name ends with a null byte.
        let result = unsafe { libc::unlinkat(self.folder.as_raw_fd(), name.as_ptr(), 0) };
        check_result("unlinkat", result, 0)
    }
}
