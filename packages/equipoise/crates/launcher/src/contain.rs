//! Kills and reaps the descendants of a trial that the launcher can find.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;

use equipoise_kernel::call::check;
use equipoise_kernel::child;
use equipoise_kernel::clock::{SECOND_NS, monotonic_ns};

use crate::cgroup::Leaf;

/// Time for which a kill is repeated. Only a process that hangs in the kernel survives one kill.
pub const KILL_TIMEOUT_NS: u64 = 10 * SECOND_NS;

/// Makes this process the new parent of each descendant whose parent ends.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: passes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Kills a child that was not reaped yet, and its process group. The kernel reuses the id of a
/// child only after the child was reaped.
pub fn kill_trial(pid: libc::pid_t) {
    kill_with_group(pid, pid);
}

/// Kills a child, and its process group if the child or the trial leads the group. A child may be
/// in another group, such as the client's, which must not be killed.
fn kill_with_group(pid: libc::pid_t, trial: libc::pid_t) {
    // SAFETY: passes numbers only. The child was not reaped, so the kernel does not reuse its id or
    // the id of its group.
    unsafe {
        let group = libc::getpgid(pid);
        if group == pid || group == trial {
            libc::kill(-group, libc::SIGKILL);
        }
        libc::kill(pid, libc::SIGKILL);
    }
}

/// Reaps ended orphans while the trial runs, so that they do not use up process ids. The trial
/// itself is not reaped.
pub fn reap_orphans(trial: libc::pid_t) {
    loop {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is valid for writing, and all-zero if no child has ended.
        let pid = unsafe {
            if libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) != 0 {
                return;
            }
            info.assume_init().si_pid()
        };
        if pid == 0 || pid == trial {
            return;
        }
        child::discard(pid);
    }
}

/// Returns the signal that stopped a child; `None` if the child is not stopped.
pub fn stopped_by(child: libc::pid_t) -> Option<libc::c_int> {
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    let id = libc::id_t::try_from(child).ok()?;
    // SAFETY: `info` is valid for writing, and all-zero if the child is not stopped.
    unsafe {
        if libc::waitid(libc::P_PID, id, info.as_mut_ptr(), options) != 0 {
            return None;
        }
        let info = info.assume_init();
        (info.si_pid() == child).then(|| info.si_status())
    }
}

/// The descendants that `sweep` found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// Number of descendants that ended by SIGKILL.
    pub killed: u32,
    /// Process ids of the descendants that did not end.
    pub survivors: Vec<libc::pid_t>,
}

/// Kills and reaps every remaining descendant. The trial itself was reaped before.
pub fn sweep(trial: libc::pid_t, leaf: Option<&Leaf>) -> SweepResult {
    let deadline = monotonic_ns() + KILL_TIMEOUT_NS;
    let mut result = SweepResult::default();
    let mut pause = Duration::from_micros(100);
    loop {
        let has_children = reap_ended(&mut result.killed);
        let has_members = leaf.is_some_and(|leaf| leaf.is_populated().unwrap_or(false));
        if !has_children && !has_members {
            return result;
        }
        let children = children();
        if monotonic_ns() > deadline {
            result.survivors = children;
            return result;
        }
        if let Some(leaf) = leaf.filter(|_| has_children) {
            // If this fails, the processes are killed one by one below.
            drop(leaf.kill());
        }
        for child in children {
            kill_with_group(child, trial);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Reaps ended children, and counts the killed children; returns whether a child still runs.
fn reap_ended(killed: &mut u32) -> bool {
    loop {
        match child::wait_for_any(libc::WNOHANG) {
            Ok((0, _)) => return true,
            Ok((_, status)) => *killed += u32::from(status.signal() == Some(libc::SIGKILL)),
            Err(_) => return false,
        }
    }
}

/// Returns the children of the launcher, including adopted orphans.
fn children() -> Vec<libc::pid_t> {
    let launcher = std::process::id();
    fs::read_to_string(format!("/proc/self/task/{launcher}/children")).map_or_else(
        |_| children_by_search(launcher),
        |list| parse_pids(&list).collect(),
    )
}

fn parse_pids(list: &str) -> impl Iterator<Item = libc::pid_t> {
    list.split_ascii_whitespace()
        .filter_map(|number| number.parse().ok())
}

/// Returns the children of a process, on kernels without `CONFIG_PROC_CHILDREN`.
fn children_by_search(parent: u32) -> Vec<libc::pid_t> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn parent_of(pid: libc::pid_t) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_process_is_found() {
        let pid = libc::pid_t::try_from(std::process::id()).expect("a pid");
        assert_eq!(parent_of(pid), Some(std::os::unix::process::parent_id()));
    }

    fn start_sleep() -> (std::process::Child, libc::pid_t) {
        let mut command = std::process::Command::new("sleep");
        let child = command.arg("60").spawn().expect("started");
        let pid = libc::pid_t::try_from(child.id()).expect("a pid");
        (child, pid)
    }

    #[test]
    fn a_stopped_child_is_distinguished_from_a_running_child() {
        let (mut child, pid) = start_sleep();
        let before = stopped_by(pid);
        // SAFETY: passes numbers only; the child was not reaped.
        unsafe { libc::kill(pid, libc::SIGSTOP) };
        let stopped = loop {
            if let Some(signal) = stopped_by(pid) {
                break signal;
            }
            thread::sleep(Duration::from_millis(1));
        };
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert_eq!((before, stopped), (None, libc::SIGSTOP));
    }

    #[test]
    fn the_search_finds_a_child() {
        let (mut child, pid) = start_sleep();
        assert!(children_by_search(std::process::id()).contains(&pid));
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }
}
