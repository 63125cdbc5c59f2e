//! `/tmp/perf-PID.map`: an interpreter's list of the code that it made while it ran.
//!
//! Every user may make a file of that name. It is read only if it is a regular file, not too long,
//! and of a user who may name the code of the process.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::regular_file::{self, Links};

/// Folder of the map files.
pub const FOLDER: &str = "/tmp";
/// A longer file is ignored.
const LONGEST_BYTES: u64 = 64 << 20;

/// The map files of the processes of one observed command.
#[derive(Debug, Clone)]
pub struct MapFiles {
    folder: PathBuf,
    since: SystemTime,
    users: Vec<u32>,
}

impl MapFiles {
    /// Map files written after the start of the command (`since`) by root, by us, or by the user to
    /// whom the command may have changed.
    pub fn new(since: SystemTime, user_of_command: Option<u32>) -> Self {
        const ROOT: u32 = 0;
        // SAFETY: has no conditions.
        let own = unsafe { libc::geteuid() };
        Self {
            folder: PathBuf::from(FOLDER),
            since,
            users: [ROOT, own].into_iter().chain(user_of_command).collect(),
        }
    }

    /// Returns the text of the map file of a process; `None` if there is none. A file of this run is
    /// removed: interpreters make it for us and leave it. The error is the reason to ignore the file.
    pub fn take(&self, process: u32) -> Result<Option<String>, String> {
        let path = self.path(process);
        let opened = match regular_file::open(&path, Links::Refuse) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| in_words(&error))?,
        };
        let metadata = opened.metadata().map_err(|error| in_words(&error))?;
        if metadata.modified().map_or(true, |at| at < self.since) {
            // It is of an earlier process with the same number.
            return Ok(None);
        }
        let user = metadata.uid();
        if !self.users.contains(&user) {
            return Err(format!("it belongs to another user ({user})"));
        }
        let text = read(opened);
        // It does no harm if it stays.
        let _ = fs::remove_file(&path);
        text.map(Some)
    }

    pub fn path(&self, process: u32) -> PathBuf {
        path(&self.folder, process)
    }
}

/// The map file of a process in a folder.
pub fn path(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("perf-{process}.map"))
}

fn read(opened: File) -> Result<String, String> {
    let mut text = Vec::new();
    opened
        .take(LONGEST_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| in_words(&error))?;
    if text.len() as u64 > LONGEST_BYTES {
        return Err(format!("it is longer than {} MiB", LONGEST_BYTES >> 20));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn in_words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ELOOP) => "it is a symbolic link".to_owned(),
        _ => error.to_string(),
    }
}

/// The present user of a process, or its last user if it has ended but was not reaped.
pub fn user_of(process: libc::pid_t) -> Option<u32> {
    let metadata = fs::metadata(format!("/proc/{process}")).ok()?;
    Some(metadata.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicU32, Ordering};

    const PROCESS: u32 = 7;

    /// A separate folder for one test, which is removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static MADE: AtomicU32 = AtomicU32::new(0);
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let name = format!("equipoise-maps-{}-{number}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir(&folder).expect("made");
            Self(folder)
        }

        fn files(&self, since: SystemTime) -> MapFiles {
            MapFiles {
                folder: self.0.clone(),
                ..MapFiles::new(since, None)
            }
        }

        fn map(&self) -> PathBuf {
            self.files(SystemTime::UNIX_EPOCH).path(PROCESS)
        }

        fn taken(&self) -> Result<Option<String>, String> {
            self.files(SystemTime::UNIX_EPOCH).take(PROCESS)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("removed");
        }
    }

    #[test]
    fn a_map_of_ours_is_read_and_removed() {
        let folder = Folder::new();
        assert_eq!(folder.taken(), Ok(None));
        fs::write(folder.map(), b"10 1 a\xFF").expect("written");
        assert!(folder.taken().is_ok_and(|text| text.is_some()));
        assert!(!folder.map().exists());
    }

    #[test]
    fn an_older_file_is_that_of_another_process_and_stays() {
        let folder = Folder::new();
        fs::write(folder.map(), "10 1 a").expect("written");
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(folder.files(later).take(PROCESS), Ok(None));
        assert!(folder.map().exists());
    }

    #[test]
    fn a_fifo_is_ignored_and_nobody_waits_for_it() {
        let folder = Folder::new();
        let path = CString::new(folder.map().as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path ends with NUL.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        assert_eq!(folder.taken(), Err("it is no regular file".to_owned()));
        assert!(folder.map().exists());
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let folder = Folder::new();
        symlink("/etc/passwd", folder.map()).expect("made");
        assert_eq!(folder.taken(), Err("it is a symbolic link".to_owned()));
        assert!(folder.map().is_symlink());
    }

    #[test]
    fn a_file_of_another_user_is_ignored_and_stays() {
        const OTHER: u32 = 54_321;
        let folder = Folder::new();
        fs::write(folder.map(), "10 1 a").expect("written");
        let mut files = folder.files(SystemTime::UNIX_EPOCH);
        let own = std::mem::replace(&mut files.users, vec![OTHER]);
        let ignored = files.take(PROCESS).expect_err("it is ours");
        assert!(
            ignored.starts_with("it belongs to another user"),
            "{ignored}"
        );
        assert!(folder.map().exists());
        files.users = own;
        assert!(files.take(PROCESS).is_ok_and(|text| text.is_some()));
    }

    #[test]
    fn a_giant_file_is_ignored_with_its_limit() {
        let folder = Folder::new();
        let giant = File::create(folder.map()).expect("made");
        giant.set_len(LONGEST_BYTES + 1).expect("sparse");
        assert_eq!(folder.taken(), Err("it is longer than 64 MiB".to_owned()));
    }

    #[test]
    fn the_user_of_a_process_is_that_of_its_folder() {
        let own = libc::pid_t::try_from(std::process::id()).expect("a number");
        // SAFETY: has no conditions.
        assert_eq!(user_of(own), Some(unsafe { libc::geteuid() }));
        assert_eq!(user_of(libc::pid_t::MAX), None);
    }
}
