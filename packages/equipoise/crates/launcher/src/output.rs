//! Files without a name for the output of a trial.
//!
//! A regular file never blocks its writer. Only the end of the output is kept. While the trial
//! runs, the space of earlier bytes is freed as holes (fallocate(2)). So the length of the file
//! stays the exact number of bytes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use equipoise_kernel::call::{check, owned};

/// Minimum number of bytes of a new hole, so that holes are made rarely.
const MIN_HOLE_BYTES: u64 = 1 << 20;
/// Number of bytes that `full_disk_reason` reserves for a moment, to test the free space.
const RESERVED_BYTES: libc::off_t = 1 << 16;

/// A file without a name that receives the output of a trial; it is emptied before each trial.
pub struct Capture {
    file: File,
    folder: PathBuf,
    /// Number of bytes at the start of the file that are a hole.
    punched_bytes: u64,
}

impl Capture {
    /// Creates a file in the first temporary folder that supports holes, or in memory.
    pub fn new() -> io::Result<Self> {
        let configured = std::env::var_os("TMPDIR").map(PathBuf::from);
        let defaults = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
        let file_and_folder = configured
            .into_iter()
            .filter(|folder| folder.is_absolute())
            .chain(defaults)
            .find_map(|folder| {
                let file = create_unnamed(&folder).ok().filter(can_punch)?;
                Some((file, folder))
            });
        let (file, folder) = match file_and_folder {
            Some(file_and_folder) => file_and_folder,
            None => (create_in_memory()?, PathBuf::from("memory")),
        };
        Ok(Self {
            file,
            folder,
            punched_bytes: 0,
        })
    }

    /// Empties the file, and returns a descriptor with which a child appends to it.
    pub fn open_for_child(&mut self) -> io::Result<OwnedFd> {
        if self.len()? > 0 {
            self.file.set_len(0)?;
        }
        self.punched_bytes = 0;
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = File::options().append(true).open(path)?;
        Ok(file.into())
    }

    pub fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Returns the reason if the disk is full; `None` if more can be written.
    pub fn full_disk_reason(&self) -> Option<String> {
        let length = self.len().ok()?;
        let end = libc::off_t::try_from(length).ok()?;
        let reserved = fallocate(&self.file, libc::FALLOC_FL_KEEP_SIZE, end, RESERVED_BYTES);
        // Frees the reserved bytes behind the end of the file; ext4 punches no hole there.
        let freed = reserved.and_then(|()| self.file.set_len(length));
        match freed.err()?.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => {
                Some(format!("no space was left in {}", self.folder.display()))
            }
            _ => None,
        }
    }

    /// Frees the disk space of all but the last `kept_bytes` bytes.
    pub fn trim(&mut self, kept_bytes: u32) -> io::Result<()> {
        let end = self.len()?.saturating_sub(kept_bytes.into());
        if end >= self.punched_bytes + MIN_HOLE_BYTES {
            punch(&self.file, end)?;
            self.punched_bytes = end;
        }
        Ok(())
    }

    /// Returns the last bytes, at most `max_bytes`.
    pub fn tail(&self, max_bytes: u32) -> io::Result<Vec<u8>> {
        let length = self.len()?;
        let start = length.saturating_sub(max_bytes.into());
        let mut bytes = vec![0; usize::try_from(length - start).unwrap_or(usize::MAX)];
        let mut filled = 0;
        while filled < bytes.len() {
            let offset = start + filled as u64;
            match self.file.read_at(&mut bytes[filled..], offset) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

fn create_unnamed(folder: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_TMPFILE)
        .open(folder);
    file.or_else(|_| create_and_unlink(folder))
}

/// Creates a file and removes its name, for file systems without `O_TMPFILE`.
fn create_and_unlink(folder: &Path) -> io::Result<File> {
    let template = folder.join("equipoise-XXXXXX\0");
    let mut template = template.into_os_string().into_encoded_bytes();
    // SAFETY: the template ends with NUL after six X and may be changed. Then it has the name of
    // the new file, which ends with NUL.
    unsafe {
        let file = libc::mkostemp(template.as_mut_ptr().cast(), libc::O_CLOEXEC);
        let file = owned(file)?;
        libc::unlink(template.as_ptr().cast());
        Ok(File::from(file))
    }
}

fn create_in_memory() -> io::Result<File> {
    let name = c"equipoise-capture";
    // SAFETY: the name ends with NUL, and memfd_create returns a new descriptor.
    unsafe { owned(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC)) }.map(File::from)
}

/// Whether the file system can make a hole of the first of two pages.
fn can_punch(file: &File) -> bool {
    file.set_len(8192).is_ok() && punch(file, 4096).is_ok() && file.set_len(0).is_ok()
}

fn punch(file: &File, end: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(end).map_err(|_| ErrorKind::FileTooLarge)?;
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    fallocate(file, mode, 0, length)
}

fn fallocate(
    file: &File,
    mode: libc::c_int,
    start: libc::off_t,
    length: libc::off_t,
) -> io::Result<()> {
    // SAFETY: passes numbers only.
    check(unsafe { libc::fallocate(file.as_raw_fd(), mode, start, length) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn trimming_frees_the_disk_space_of_large_output_and_keeps_its_length() {
        let mut capture = Capture::new().expect("a folder for it");
        let mut writer = File::from(capture.open_for_child().expect("opened"));
        let large_output = vec![b'x'; 5 << 20];
        writer.write_all(&large_output).expect("written");
        writer.write_all(b"the end").expect("written");
        capture.trim(4096).expect("trimmed");
        let kept = capture.file.metadata().expect("readable").blocks() * 512;
        assert!(kept < 1 << 20, "{kept} bytes are still there");
        assert_eq!(capture.len().expect("readable"), (5 << 20) + 7);
        assert_eq!(capture.tail(7).expect("readable"), b"the end");
    }

    #[test]
    fn the_check_for_free_space_uses_no_space_and_changes_nothing() {
        let mut capture = Capture::new().expect("a folder for it");
        let mut writer = File::from(capture.open_for_child().expect("opened"));
        writer.write_all(b"the end").expect("written");
        assert_eq!(capture.full_disk_reason(), None);
        let kept = capture.file.metadata().expect("readable").blocks() * 512;
        assert!(
            kept < RESERVED_BYTES.cast_unsigned(),
            "{kept} bytes are kept"
        );
        assert_eq!(capture.tail(7).expect("readable"), b"the end");
        assert_eq!(capture.len().expect("readable"), 7);
    }

    #[test]
    fn the_file_is_emptied_before_each_trial() {
        let mut capture = Capture::new().expect("a folder for it");
        let mut first = File::from(capture.open_for_child().expect("opened"));
        first.write_all(b"first").expect("written");
        capture.open_for_child().expect("opened");
        assert_eq!(capture.len().expect("readable"), 0);
    }
}
