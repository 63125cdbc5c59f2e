//! A cgroup (version 2) that holds one trial after the other.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::clone::CAN_ENTER_CGROUP;

const PREFIX: &str = "equipoise-";

/// A leaf below the launcher's own cgroup, removed when dropped.
pub struct Leaf {
    parent: PathBuf,
    folder: PathBuf,
    handle: File,
    number: u32,
    killed: Cell<bool>,
}

impl Leaf {
    /// Makes one.
    ///
    /// # Errors
    /// In words: why none can be made here.
    pub fn new() -> Result<Self, String> {
        if !CAN_ENTER_CGROUP {
            return Err("starting in a cgroup is not written for this processor".to_owned());
        }
        let parent = own_folder()?;
        remove_stale(&parent);
        Self::below(parent, 0)
    }

    fn below(parent: PathBuf, number: u32) -> Result<Self, String> {
        let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&folder)
            .map_err(|error| format!("cannot make a cgroup in {}: {error}", parent.display()))?;
        match usable(&folder) {
            Ok(handle) => Ok(Self {
                parent,
                folder,
                handle,
                number,
                killed: Cell::new(false),
            }),
            Err(reason) => {
                // The reason matters more than a folder that could not be removed again.
                drop(fs::remove_dir(&folder));
                Err(reason)
            }
        }
    }

    /// Replaces a leaf that was killed once.
    ///
    /// Linux (seen on 6.18) kills whatever is started in such a cgroup from outside: it
    /// compares the kills of the new cgroup with those of the parent process's own.
    ///
    /// # Errors
    /// In words: why none can be made.
    pub fn renew_if_killed(&mut self) -> Result<(), String> {
        if self.killed.get() {
            *self = Self::below(self.parent.clone(), self.number.wrapping_add(1))?;
        }
        Ok(())
    }

    /// The leaf, if being in it changes nothing for a trial.
    ///
    /// # Errors
    /// In words: which controllers would schedule or account for a trial differently there.
    pub fn if_neutral(self) -> Result<Self, String> {
        let path = self.folder.join("cgroup.controllers");
        let controllers = fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        match controllers.trim() {
            "" => Ok(self),
            some => Err(format!(
                "a cgroup here has controllers ({some}) that change how a trial runs"
            )),
        }
    }

    /// The descriptor in which a child starts.
    #[must_use]
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Kills all that is in it, at once.
    ///
    /// # Errors
    /// What writing says.
    pub fn kill(&self) -> io::Result<()> {
        self.killed.set(true);
        fs::write(self.folder.join("cgroup.kill"), "1")
    }

    /// Whether anything is in it.
    ///
    /// # Errors
    /// What reading says.
    pub fn is_populated(&self) -> io::Result<bool> {
        let events = fs::read_to_string(self.folder.join("cgroup.events"))?;
        Ok(field(&events, "populated") != Some(0))
    }

    /// How many of its processes were killed for want of memory so far.
    ///
    /// # Errors
    /// In words, if the kernel does not say.
    pub fn out_of_memory_kills(&self) -> Result<u64, String> {
        let events = fs::read_to_string(self.folder.join("memory.events"))
            .map_err(|_| "the trial's cgroup has no memory controller".to_owned())?;
        field(&events, "oom_kill").ok_or_else(|| "memory.events has no oom_kill".to_owned())
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        // It may still be busy if something in it could not be killed; the next launcher
        // removes it then.
        drop(fs::remove_dir(&self.folder));
    }
}

fn usable(folder: &Path) -> Result<File, String> {
    if !folder.join("cgroup.kill").exists() {
        return Err("this kernel has no cgroup.kill (Linux 5.14)".to_owned());
    }
    File::open(folder).map_err(|error| format!("cannot open {}: {error}", folder.display()))
}

fn own_folder() -> Result<PathBuf, String> {
    let read = |path: &str| {
        fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
    };
    let mounts = read("/proc/self/mountinfo")?;
    let membership = read("/proc/self/cgroup")?;
    let own = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("this process is in no cgroup of version 2")?;
    mounts
        .lines()
        .find_map(|line| folder_in_mount(line, own))
        .ok_or_else(|| "no mounted cgroup hierarchy of version 2 holds this process".to_owned())
}

/// The folder of cgroup `own`, if this line of mountinfo mounts it (proc(5)).
fn folder_in_mount(line: &str, own: &str) -> Option<PathBuf> {
    let (place, kind) = line.split_once(" - ")?;
    if kind.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = place.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let below = Path::new(own).strip_prefix(root).ok()?;
    Some(Path::new(point).join(below))
}

/// Removes the leaves of launchers that are gone; one that is in use cannot be removed.
fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let number = owner
            .and_then(|owner| owner.split('-').next())
            .and_then(|number| number.parse::<u32>().ok());
        if number.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists()) {
            drop(fs::remove_dir(entry.path()));
        }
    }
}

fn field(events: &str, name: &str) -> Option<u64> {
    events
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_folder_follows_from_mount_and_membership() {
        let line = "41 31 0:38 /a /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        assert_eq!(
            folder_in_mount(line, "/a/b"),
            Some(PathBuf::from("/sys/fs/cgroup/unified/b"))
        );
        assert_eq!(folder_in_mount(line, "/elsewhere"), None);
        assert_eq!(
            folder_in_mount("32 31 0:29 / /x rw - cgroup c rw", "/"),
            None
        );
    }

    #[test]
    fn fields_of_events_are_read() {
        assert_eq!(field("oom 1\noom_kill 3\n", "oom_kill"), Some(3));
        assert_eq!(field("populated 0\n", "frozen"), None);
    }
}
