//! FIFOs under the names of map files: an interpreter that writes its map would wait for a reader.
//!
//! Another user may have made a FIFO of the name before the interpreter opens it. Then this program
//! is the reader, and throws away what it reads.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::perf::record::Record;
use crate::stacks::map_file;

/// Number of calls of `read` that look for a FIFO; there is a call every 10 ms or sooner.
const LOOKS: u32 = 300;

/// The FIFOs of the observed processes.
pub struct Fifos {
    folder: PathBuf,
    /// Number of calls of `read` that still look at a process.
    young: HashMap<u32, u32>,
    open: HashMap<u32, File>,
}

impl Fifos {
    pub fn new() -> Self {
        Self {
            folder: PathBuf::from(map_file::FOLDER),
            young: HashMap::new(),
            open: HashMap::new(),
        }
    }

    /// Learns from a record which processes there are.
    pub fn note(&mut self, record: &[u8]) {
        match Record::read(record) {
            Some(Record::Command {
                process,
                at_exec: true,
                ..
            }) => self.began(process),
            Some(Record::Fork(task)) if task.process != task.parent_process => {
                self.began(task.process);
            }
            Some(Record::Exit(task)) if task.process == task.thread => {
                self.young.remove(&task.process);
                self.open.remove(&task.process);
            }
            _ => {}
        }
    }

    fn began(&mut self, process: u32) {
        self.young.insert(process, LOOKS);
    }

    /// Looks for FIFOs of young processes, and empties those that were found.
    pub fn read(&mut self) {
        let Self {
            folder,
            young,
            open,
        } = self;
        young.retain(|process, looks| {
            let path = map_file::path(folder, *process);
            let is_fifo = fs::symlink_metadata(&path).is_ok_and(|it| it.file_type().is_fifo());
            let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_CLOEXEC;
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(flags);
            // A FIFO that cannot be opened is tried again.
            if is_fifo && let Ok(fifo) = options.open(path) {
                open.insert(*process, fifo);
                return false;
            }
            *looks -= 1;
            *looks > 0
        });
        let mut bytes = [0; 4096];
        for fifo in open.values_mut() {
            // An empty FIFO is an error here, because it is open without blocking; without a
            // writer, 0 bytes are read.
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
    fn who_writes_to_a_fifo_finds_a_reader_and_room() {
        const PROCESS: u32 = 7;
        let name = format!("equipoise-fifos-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("made");
        let path = map_file::path(&folder, PROCESS);
        let written = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path ends with NUL.
        assert_eq!(unsafe { libc::mkfifo(written.as_ptr(), 0o600) }, 0);
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        let refused = options.open(&path).expect_err("nobody reads");
        assert_eq!(refused.raw_os_error(), Some(libc::ENXIO));

        let mut fifos = Fifos {
            folder: folder.clone(),
            ..Fifos::new()
        };
        fifos.began(PROCESS);
        fifos.read();
        let mut writer = options.open(&path).expect("there is a reader");
        let full = loop {
            if let Err(error) = writer.write(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        fifos.read();
        assert!(writer.write(&[0; 4096]).is_ok());
        fs::remove_dir_all(folder).expect("removed");
    }
}
