//! Finds the ids of tracepoints, which the kernel shows in a mounted tracefs.

use std::ffi::CStr;
use std::fs;
use std::io::{self, PipeWriter, Read, Write};
use std::ptr;

use equipoise_kernel::call::check;

const TRACEFS_FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Returns the ids of tracepoints (such as `raw_syscalls/sys_enter`), or why they cannot be read.
/// If tracefs is not mounted, a child mounts it in a private mount namespace.
pub fn ids(names: &[&str]) -> Result<Vec<u64>, String> {
    let from_tracefs = TRACEFS_FOLDERS
        .iter()
        .find_map(|folder| read_ids(folder, names).ok());
    from_tracefs
        .map_or_else(|| read_in_child(names), Ok)
        .map_err(|error| format!("tracefs cannot be read: {error}"))
}

fn read_ids(folder: &str, names: &[&str]) -> io::Result<Vec<u64>> {
    names
        .iter()
        .map(|name| {
            let text = fs::read_to_string(format!("{folder}/events/{name}/id"))?;
            text.trim().parse().map_err(io::Error::other)
        })
        .collect()
}

fn read_in_child(names: &[&str]) -> io::Result<Vec<u64>> {
    let (mut receiver, sender) = io::pipe()?;
    // SAFETY: this process has one thread, so the child may use everything.
    let child = unsafe { libc::fork() };
    match check(child)? {
        0 => {
            let status = i32::from(send_ids(sender, names).is_err());
            // SAFETY: ends the child without running exit handlers of the parent.
            unsafe { libc::_exit(status) }
        }
        _ => drop(sender),
    }
    let mut text = String::new();
    let read = receiver.read_to_string(&mut text);
    equipoise_kernel::child::discard(child);
    read?;
    let lines = text.split_ascii_whitespace();
    let ids: Vec<u64> = lines.filter_map(|line| line.parse().ok()).collect();
    if ids.len() != names.len() {
        return Err(io::Error::other(text));
    }
    Ok(ids)
}

/// In the child: mounts tracefs and writes the ids, or the reason why they cannot be read.
fn send_ids(mut sender: PipeWriter, names: &[&str]) -> io::Result<()> {
    match mount_tracefs().and_then(|()| read_ids(TRACEFS_FOLDERS[0], names)) {
        Ok(ids) => ids.iter().try_for_each(|id| writeln!(sender, "{id}")),
        Err(error) => {
            write!(sender, "{error}")?;
            Err(error)
        }
    }
}

fn mount_tracefs() -> io::Result<()> {
    const NULL: *const libc::c_char = ptr::null();
    const MOUNT_POINT: &CStr = c"/sys/kernel/tracing";
    // SAFETY: the strings are NUL-terminated; the rest are numbers.
    let mounted = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                NULL,
                c"/".as_ptr(),
                NULL,
                libc::MS_REC | libc::MS_PRIVATE,
                ptr::null(),
            ) == 0
            && libc::mount(
                c"tracefs".as_ptr(),
                MOUNT_POINT.as_ptr(),
                c"tracefs".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
                ptr::null(),
            ) == 0
    };
    mounted.then_some(()).ok_or_else(io::Error::last_os_error)
}
