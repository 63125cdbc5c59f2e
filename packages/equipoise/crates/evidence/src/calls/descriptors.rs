//! Adds up the uses of each file, socket and pipe by the observed processes.

use std::collections::HashMap;
use std::fs;

use equipoise_kernel::clock::monotonic_ns;

use serde::Serialize;

use crate::calls::event::{Caller, in_seconds};

/// Sums over the uses of all descriptors of one file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Use {
    pub reads: u64,
    pub bytes_read: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub syncs: u64,
    /// Time inside the calls that use the descriptors.
    #[serde(rename = "seconds", serialize_with = "in_seconds")]
    pub ns: u64,
}

impl Use {
    fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.writes += other.writes;
        self.bytes_written += other.bytes_written;
        self.syncs += other.syncs;
        self.ns += other.ns;
    }
}

/// The uses of each file. `/proc` has the file name of each open descriptor.
#[derive(Debug, Default)]
pub struct Descriptors {
    /// Open descriptors by process and number.
    open: HashMap<(u32, u64), OpenDescriptor>,
    closed: HashMap<String, Use>,
}

#[derive(Debug)]
struct OpenDescriptor {
    name: String,
    /// Time of the look-up. If the descriptor was closed before, the name is wrong.
    looked_up_ns: u64,
    usage: Use,
}

/// Name of all descriptors that were closed before their names could be looked up.
pub const UNKNOWN_NAME: &str = "(closed before it could be looked up)";

impl Descriptors {
    /// Returns the uses of an open descriptor, whose name is looked up at the first use.
    pub fn use_of(&mut self, caller: Caller, descriptor: u64) -> &mut Use {
        let open = self.open.entry((caller.process, descriptor));
        let open = open.or_insert_with(|| OpenDescriptor {
            name: look_up(caller, descriptor),
            looked_up_ns: monotonic_ns(),
            usage: Use::default(),
        });
        &mut open.usage
    }

    /// Ends the use of a descriptor, because its number may belong to another file from now on.
    pub fn close(&mut self, process: u32, descriptor: u64, ns: u64) {
        if let Some(open) = self.open.remove(&(process, descriptor)) {
            self.add_closed(open, ns);
        }
    }

    /// Ends the use of all descriptors of a process that ended or executed another program.
    pub fn close_all(&mut self, process: u32, ns: u64) {
        let removed = self.open.extract_if(|(owner, _), _| *owner == process);
        for (_, open) in removed.collect::<Vec<_>>() {
            self.add_closed(open, ns);
        }
    }

    /// Returns the uses of open and closed descriptors, by file name.
    pub fn by_name(&self) -> HashMap<String, Use> {
        let mut sums = self.closed.clone();
        for open in self.open.values() {
            sums.entry(open.name.clone()).or_default().add(open.usage);
        }
        sums.retain(|_, usage| *usage != Use::default());
        sums
    }

    fn add_closed(&mut self, open: OpenDescriptor, closed_ns: u64) {
        let is_name_valid = open.looked_up_ns <= closed_ns;
        let name = if is_name_valid {
            open.name
        } else {
            UNKNOWN_NAME.to_owned()
        };
        self.closed.entry(name).or_default().add(open.usage);
    }
}

fn look_up(caller: Caller, descriptor: u64) -> String {
    let read = |folder| fs::read_link(format!("{folder}/fd/{descriptor}")).ok();
    let path = caller.proc_folders().into_iter().find_map(read);
    path.map_or(UNKNOWN_NAME.to_owned(), |path| {
        unnumbered(&path.to_string_lossy())
    })
}

/// Removes the number from the name of a socket or pipe, because it differs in each run.
fn unnumbered(path: &str) -> String {
    match path.split_once(":[") {
        Some((kind @ ("socket" | "pipe"), _)) => kind.to_owned(),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn open_file() -> (fs::File, u64) {
        let file = fs::File::open("/proc/version").expect("opened");
        let descriptor = u64::try_from(file.as_raw_fd()).expect("a number");
        (file, descriptor)
    }

    #[test]
    fn uses_are_added_up_under_the_path_of_the_file() {
        let caller = Caller::main(std::process::id());
        let (_file, descriptor) = open_file();
        let mut descriptors = Descriptors::default();
        descriptors.use_of(caller, descriptor).bytes_read += 5;
        descriptors.close(caller.process, descriptor, u64::MAX);
        descriptors.use_of(caller, descriptor).bytes_read += 7;
        assert_eq!(descriptors.by_name()["/proc/version"].bytes_read, 12);
    }

    #[test]
    fn a_name_that_was_looked_up_after_the_close_is_ignored() {
        let caller = Caller::main(std::process::id());
        let (_file, descriptor) = open_file();
        let mut descriptors = Descriptors::default();
        descriptors.use_of(caller, descriptor).writes += 1;
        descriptors.close(caller.process, descriptor, 1);
        assert_eq!(descriptors.by_name()[UNKNOWN_NAME].writes, 1);
    }

    #[test]
    fn a_closed_descriptor_has_no_file_name() {
        let mut descriptors = Descriptors::default();
        let caller = Caller::main(std::process::id());
        descriptors.use_of(caller, 999_999).reads += 1;
        assert_eq!(descriptors.by_name()[UNKNOWN_NAME].reads, 1);
    }

    #[test]
    fn names_of_pipes_and_sockets_have_no_number() {
        assert_eq!(unnumbered("pipe:[12345]"), "pipe");
        assert_eq!(unnumbered("socket:[9]"), "socket");
        assert_eq!(
            unnumbered("anon_inode:[eventpoll]"),
            "anon_inode:[eventpoll]"
        );
    }
}
