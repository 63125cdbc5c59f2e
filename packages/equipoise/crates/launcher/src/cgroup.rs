//! A cgroup (version 2) that contains the processes of one trial at a time.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::clone::CAN_ENTER_CGROUP;
use crate::reading::cannot_read;

/// Beginning of the name of each leaf.
const LEAF_PREFIX: &str = "equipoise-";

/// Number of hexadecimal digits of a campaign's identity.
pub const IDENTITY_DIGITS: usize = 16;

/// Maximum number of attempts to create a leaf; another launcher may remove an unlocked leaf.
const MAX_ATTEMPTS: u32 = 3;

/// A leaf: a cgroup directly below the launcher's own cgroup, removed when dropped.
///
/// Its name is `equipoise-IDENTITY-PID-NUMBER`, with the identity of the campaign. Equipoise uses
/// the name to find the leaves of a killed launcher. The launcher keeps the leaf locked
/// (`flock(2)`), because every process namespace can see a lock.
pub struct Leaf {
    parent: PathBuf,
    folder: PathBuf,
    handle: File,
    identity: String,
    /// Number in the name of the leaf; a replacement of the leaf has the next number.
    number: u32,
    was_killed: Cell<bool>,
}

impl Leaf {
    /// Creates a leaf for the campaign with this identity (`None`: a random identity). The error is
    /// the reason why no leaf can be created here.
    pub fn new(identity: Option<&str>) -> Result<Self, String> {
        if !CAN_ENTER_CGROUP {
            return Err("this processor has no code for a start in a cgroup".to_owned());
        }
        let identity = match identity {
            Some(identity) => identity.to_owned(),
            None => random_identity().map_err(|error| format!("/dev/urandom: {error}"))?,
        };
        let parent = launcher_cgroup()?;
        remove_stale_leaves(&parent);
        Self::create(parent, identity, 0)
    }

    fn create(parent: PathBuf, identity: String, number: u32) -> Result<Self, String> {
        let pid = std::process::id();
        let folder = parent.join(format!("{LEAF_PREFIX}{identity}-{pid}-{number}"));
        for _ in 0..MAX_ATTEMPTS {
            fs::create_dir(&folder).map_err(|error| {
                format!("cannot make a cgroup in {}: {error}", parent.display())
            })?;
            match open_and_lock(&folder) {
                Ok(Some(handle)) => {
                    return Ok(Self {
                        parent,
                        folder,
                        handle,
                        identity,
                        number,
                        was_killed: Cell::new(false),
                    });
                }
                Ok(None) => {}
                Err(reason) => {
                    // The reason is more important than an error of the removal.
                    drop(fs::remove_dir(&folder));
                    return Err(reason);
                }
            }
        }
        Err(format!("another launcher removes {}", folder.display()))
    }

    /// Replaces this leaf by a new leaf if processes in it were killed. After such a kill, Linux
    /// (seen on 6.18) also kills each process that is started into the cgroup from outside.
    pub fn renew_if_killed(&mut self) -> Result<(), String> {
        if self.was_killed.get() {
            let number = self.number.wrapping_add(1);
            *self = Self::create(self.parent.clone(), self.identity.clone(), number)?;
        }
        Ok(())
    }

    /// Returns the leaf if it does not change how a trial runs. The error names the controllers
    /// that would schedule or account for a trial differently.
    pub fn if_neutral(self) -> Result<Self, String> {
        let path = self.folder.join("cgroup.controllers");
        let controllers =
            fs::read_to_string(&path).map_err(cannot_read(&path.to_string_lossy()))?;
        match controllers.trim() {
            "" => Ok(self),
            names => Err(format!(
                "cgroups here have controllers ({names}) that change how a trial runs"
            )),
        }
    }

    /// Returns the descriptor of the cgroup. A child can be started in it.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    pub fn kill(&self) -> io::Result<()> {
        self.was_killed.set(true);
        fs::write(self.folder.join("cgroup.kill"), "1")
    }

    pub fn is_populated(&self) -> io::Result<bool> {
        let events = fs::read_to_string(self.folder.join("cgroup.events"))?;
        Ok(event_count(&events, "populated") != Some(0))
    }

    /// Returns the number of processes of the leaf that the kernel killed because memory ran out.
    /// The error is the reason why the number is unknown.
    pub fn out_of_memory_kills(&self) -> Result<u64, String> {
        let events = fs::read_to_string(self.folder.join("memory.events"))
            .map_err(|_| "the trial's cgroup has no memory controller".to_owned())?;
        event_count(&events, "oom_kill").ok_or_else(|| "memory.events has no oom_kill".to_owned())
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        // If a process could not be killed, the leaf stays, and the next launcher removes it.
        drop(fs::remove_dir(&self.folder));
    }
}

/// Opens and locks a new leaf; `None` if another launcher removed the leaf first.
fn open_and_lock(folder: &Path) -> Result<Option<File>, String> {
    let cannot_open = |error: io::Error| format!("cannot open {}: {error}", folder.display());
    let handle = match File::open(folder) {
        Ok(handle) => handle,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot_open(error)),
    };
    handle.lock().map_err(cannot_open)?;
    let opened_inode = handle.metadata().map_err(cannot_open)?.ino();
    if !fs::metadata(folder).is_ok_and(|metadata| metadata.ino() == opened_inode) {
        return Ok(None);
    }
    if !folder.join("cgroup.kill").exists() {
        return Err("this kernel has no cgroup.kill (Linux 5.14)".to_owned());
    }
    Ok(Some(handle))
}

fn random_identity() -> io::Result<String> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:0IDENTITY_DIGITS$x}", u64::from_ne_bytes(bytes)))
}

/// Whether a text is the identity of a campaign: 64 bits in hexadecimal digits.
pub fn is_identity(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == IDENTITY_DIGITS && text.bytes().all(is_digit)
}

fn launcher_cgroup() -> Result<PathBuf, String> {
    let read = |path: &str| fs::read_to_string(path).map_err(cannot_read(path));
    let mounts = read("/proc/self/mountinfo")?;
    let membership = read("/proc/self/cgroup")?;
    let cgroup = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("this process is in no cgroup of version 2")?;
    mounts
        .lines()
        .find_map(|line| folder_in_mount(line, cgroup))
        .ok_or_else(|| "no mounted cgroup hierarchy of version 2 contains this process".to_owned())
}

/// Returns the folder of a cgroup; `None` if this line of mountinfo does not mount it (proc(5)).
fn folder_in_mount(line: &str, cgroup: &str) -> Option<PathBuf> {
    let (mount, file_system) = line.split_once(" - ")?;
    if file_system.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let mut fields = mount.split(' ').skip(3);
    let (root, mount_point) = (fields.next()?, fields.next()?);
    let relative_path = Path::new(cgroup).strip_prefix(root).ok()?;
    Some(Path::new(mount_point).join(relative_path))
}

/// Removes the empty leaves of this user whose launchers have ended. A living launcher holds the
/// lock of its leaf. A leaf with processes cannot be removed.
fn remove_stale_leaves(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_leaf = entry.file_name().to_str().is_some_and(is_leaf_name);
        if is_leaf && is_abandoned(&entry.path()) {
            drop(fs::remove_dir(entry.path()));
        }
    }
}

fn is_leaf_name(name: &str) -> bool {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let Some(rest) = name.strip_prefix(LEAF_PREFIX) else {
        return false;
    };
    let parts: Vec<&str> = rest.split('-').collect();
    matches!(parts[..], [identity, pid, number]
        if is_identity(identity) && is_number(pid) && is_number(number))
}

fn is_abandoned(folder: &Path) -> bool {
    // SAFETY: takes no arguments, touches no memory, and cannot fail.
    let user = unsafe { libc::geteuid() };
    File::open(folder).is_ok_and(|handle| {
        handle.metadata().is_ok_and(|data| data.uid() == user) && handle.try_lock().is_ok()
    })
}

fn event_count(events: &str, name: &str) -> Option<u64> {
    let mut lines = events.lines();
    lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_cgroup_is_found_in_a_line_of_mountinfo() {
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
    fn a_leaf_name_has_an_identity_a_process_and_a_number() {
        let identity = random_identity().expect("random bytes");
        assert!(is_identity(&identity));
        assert!(is_leaf_name(&format!("equipoise-{identity}-4711-0")));
        for other in [
            "equipoise-4711-0".to_owned(),
            "equipoise-notes".to_owned(),
            format!("equipoise-{identity}"),
            format!("equipoise-{identity}-4711-0-1"),
            format!("equipoise-{identity}-own-0"),
            format!("other-{identity}-4711-0"),
        ] {
            assert!(!is_leaf_name(&other), "{other}");
        }
    }

    #[test]
    fn counts_of_events_are_read() {
        assert_eq!(event_count("oom 1\noom_kill 3\n", "oom_kill"), Some(3));
        assert_eq!(event_count("populated 0\n", "frozen"), None);
    }
}
