//! Keeps interpreters from waiting for a FIFO that has the name of their map file.
//!
//! A map file lists the code that an interpreter generates. Another user may have made a FIFO under
//! the name of a map file. Without a reader, the interpreter would wait when it writes its list. So
//! this module reads such FIFOs, and discards their contents.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::perf::record::Record;
use crate::stacks::map_file;

/// Number of searches for the FIFO of a new process. There is a search at least every 10 ms.
const MAX_SEARCHES: u32 = 300;

/// The FIFOs of the observed processes.
pub struct Fifos {
    folder: PathBuf,
    /// Number of remaining searches for the FIFO of each new process.
    remaining_searches: HashMap<u32, u32>,
    /// The open FIFOs by process.
    opened: HashMap<u32, File>,
}

impl Fifos {
    pub fn new() -> Self {
        Self {
            folder: PathBuf::from(map_file::FOLDER),
            remaining_searches: HashMap::new(),
            opened: HashMap::new(),
        }
    }

    /// Adds the process of a record if the process begins; removes it if it ends.
    pub fn add_or_remove_process(&mut self, record: &[u8]) {
        match Record::read(record) {
            Some(Record::ThreadName {
                process,
                at_exec: true,
                ..
            }) => self.start_searching(process),
            Some(Record::Fork(task)) if task.process != task.parent_process => {
                self.start_searching(task.process);
            }
            Some(Record::Exit(task)) if task.process == task.thread => {
                self.remaining_searches.remove(&task.process);
                self.opened.remove(&task.process);
            }
            _ => {}
        }
    }

    fn start_searching(&mut self, process: u32) {
        self.remaining_searches.insert(process, MAX_SEARCHES);
    }

    /// Searches for FIFOs of new processes, and empties the open FIFOs.
    pub fn search_and_empty(&mut self) {
        let Self {
            folder,
            remaining_searches,
            opened,
        } = self;
        remaining_searches.retain(|process, count| {
            let path = map_file::path(folder, *process);
            let is_fifo = fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_fifo());
            let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_CLOEXEC;
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(flags);
            // If the FIFO cannot be opened, the next call tries again.
            if is_fifo && let Ok(fifo) = options.open(path) {
                opened.insert(*process, fifo);
                return false;
            }
            *count -= 1;
            *count > 0
        });
        let mut bytes = [0; 4096];
        for fifo in opened.values_mut() {
            // The FIFO does not block: `read` fails if it is empty, and returns 0 without a writer.
            while fifo.read(&mut bytes).is_ok_and(|count| count > 0) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::io::{self, Write};
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_writer_to_a_fifo_never_waits() {
        const PROCESS: u32 = 7;
        let name = format!("equipoise-fifos-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("made");
        let path = map_file::path(&folder, PROCESS);
        let path_text = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path ends with NUL.
        assert_eq!(unsafe { libc::mkfifo(path_text.as_ptr(), 0o600) }, 0);
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        let refused = options.open(&path).expect_err("nobody reads");
        assert_eq!(refused.raw_os_error(), Some(libc::ENXIO));

        let mut fifos = Fifos {
            folder: folder.clone(),
            ..Fifos::new()
        };
        fifos.start_searching(PROCESS);
        fifos.search_and_empty();
        let mut writer = options.open(&path).expect("there is a reader");
        let error_when_full = loop {
            if let Err(error) = writer.write(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(error_when_full.kind(), io::ErrorKind::WouldBlock);
        fifos.search_and_empty();
        assert!(writer.write(&[0; 4096]).is_ok());
        fs::remove_dir_all(folder).expect("removed");
    }
}
