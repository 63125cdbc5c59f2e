//! Reads map files (`/tmp/perf-PID.map`), in which an interpreter lists the code that it generated.
//!
//! Every user may make such a file. So it must be regular, not too long, and of a trusted user.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::regular_file::{self, Links};

pub const FOLDER: &str = "/tmp";
/// Largest length of a map file. A longer file is ignored.
const MAX_BYTES: u64 = 64 << 20;

/// The map files of the processes of one observed command.
#[derive(Debug, Clone)]
pub struct MapFiles {
    folder: PathBuf,
    since: SystemTime,
    /// Trusted users.
    users: Vec<u32>,
}

impl MapFiles {
    /// Accepts map files that were written after `since`, the start of the command. Root, this user
    /// and the user of the command are trusted.
    pub fn new(since: SystemTime, user_of_command: Option<u32>) -> Self {
        const ROOT: u32 = 0;
        // SAFETY: has no conditions.
        let user = unsafe { libc::geteuid() };
        Self {
            folder: PathBuf::from(FOLDER),
            since,
            users: [ROOT, user].into_iter().chain(user_of_command).collect(),
        }
    }

    /// Returns the text of the map file of a process, and removes the file; `None` if there is no
    /// file of this run. The error is the reason why the file is ignored.
    pub fn take(&self, process: u32) -> Result<Option<String>, String> {
        let path = self.path(process);
        let file = match regular_file::open(&path, Links::Refuse) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| error_reason(&error))?,
        };
        let metadata = file.metadata().map_err(|error| error_reason(&error))?;
        if metadata.modified().map_or(true, |at| at < self.since) {
            // The file belongs to an earlier process with the same number.
            return Ok(None);
        }
        let user = metadata.uid();
        if !self.users.contains(&user) {
            return Err(format!("it belongs to another user ({user})"));
        }
        let text = read(file);
        // If the file cannot be removed, it does no harm.
        let _ = fs::remove_file(&path);
        text.map(Some)
    }

    pub fn path(&self, process: u32) -> PathBuf {
        path(&self.folder, process)
    }
}

/// Returns the path of the map file of a process in a folder.
pub fn path(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("perf-{process}.map"))
}

fn read(file: File) -> Result<String, String> {
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| error_reason(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("it is longer than {} MiB", MAX_BYTES >> 20));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn error_reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ELOOP) => "it is a symbolic link".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns the user of a process. The process may have ended, if it was not reaped.
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

    /// The folder of one test, which is removed at the end of the test.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new() -> Self {
            static FOLDER_COUNT: AtomicU32 = AtomicU32::new(0);
            let number = FOLDER_COUNT.fetch_add(1, Ordering::Relaxed);
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

        fn map_path(&self) -> PathBuf {
            self.files(SystemTime::UNIX_EPOCH).path(PROCESS)
        }

        fn take(&self) -> Result<Option<String>, String> {
            self.files(SystemTime::UNIX_EPOCH).take(PROCESS)
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("removed");
        }
    }

    #[test]
    fn a_map_file_of_this_user_is_read_and_removed() {
        let folder = TestFolder::new();
        assert_eq!(folder.take(), Ok(None));
        fs::write(folder.map_path(), b"10 1 a\xFF").expect("written");
        assert!(folder.take().is_ok_and(|text| text.is_some()));
        assert!(!folder.map_path().exists());
    }

    #[test]
    fn a_file_from_before_the_command_is_ignored_and_stays() {
        let folder = TestFolder::new();
        fs::write(folder.map_path(), "10 1 a").expect("written");
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(folder.files(later).take(PROCESS), Ok(None));
        assert!(folder.map_path().exists());
    }

    #[test]
    fn a_fifo_is_ignored_without_waiting() {
        let folder = TestFolder::new();
        let path = CString::new(folder.map_path().as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path ends with NUL.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        assert_eq!(folder.take(), Err("it is not a regular file".to_owned()));
        assert!(folder.map_path().exists());
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let folder = TestFolder::new();
        symlink("/etc/passwd", folder.map_path()).expect("made");
        assert_eq!(folder.take(), Err("it is a symbolic link".to_owned()));
        assert!(folder.map_path().is_symlink());
    }

    #[test]
    fn a_file_of_another_user_is_ignored_and_stays() {
        const OTHER_USER: u32 = 54_321;
        let folder = TestFolder::new();
        fs::write(folder.map_path(), "10 1 a").expect("written");
        let mut files = folder.files(SystemTime::UNIX_EPOCH);
        let trusted_users = std::mem::replace(&mut files.users, vec![OTHER_USER]);
        let ignored = files.take(PROCESS).expect_err("not trusted");
        assert!(
            ignored.starts_with("it belongs to another user"),
            "{ignored}"
        );
        assert!(folder.map_path().exists());
        files.users = trusted_users;
        assert!(files.take(PROCESS).is_ok_and(|text| text.is_some()));
    }

    #[test]
    fn a_file_that_is_too_long_is_ignored_and_the_limit_is_reported() {
        let folder = TestFolder::new();
        let huge_file = File::create(folder.map_path()).expect("made");
        huge_file.set_len(MAX_BYTES + 1).expect("sparse");
        assert_eq!(folder.take(), Err("it is longer than 64 MiB".to_owned()));
    }

    #[test]
    fn the_user_of_a_process_is_found() {
        let own_process = libc::pid_t::try_from(std::process::id()).expect("a number");
        // SAFETY: has no conditions.
        assert_eq!(user_of(own_process), Some(unsafe { libc::geteuid() }));
        assert_eq!(user_of(libc::pid_t::MAX), None);
    }
}
