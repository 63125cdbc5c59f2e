//! The numbers of tracepoints, which only a mounted tracefs tells.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::ptr;

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The numbers of these tracepoints (`raw_syscalls/sys_enter`), in their order.
///
/// Where tracefs is not mounted, a child mounts it in a mount namespace of its own, which ends
/// with it.
///
/// # Errors
/// Why they cannot be read, in words.
pub fn numbers(names: &[&str]) -> Result<Vec<u64>, String> {
    for folder in MOUNTED {
        if let Ok(numbers) = read_all(folder, names) {
            return Ok(numbers);
        }
    }
    from_private_mount(names).map_err(|error| format!("tracefs cannot be read: {error}"))
}

fn read_all(folder: &str, names: &[&str]) -> io::Result<Vec<u64>> {
    names
        .iter()
        .map(|name| {
            let text = fs::read_to_string(format!("{folder}/events/{name}/id"))?;
            text.trim().parse().map_err(io::Error::other)
        })
        .collect()
}

fn from_private_mount(names: &[&str]) -> io::Result<Vec<u64>> {
    let mut ends: [RawFd; 2] = [0; 2];
    // SAFETY: `ends` is valid for writing two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: pipe2 returned two new descriptors that nobody else owns.
    let (mut out, input) = unsafe {
        (
            fs::File::from_raw_fd(ends[0]),
            fs::File::from_raw_fd(ends[1]),
        )
    };
    // SAFETY: this process has one thread, so the child may do what it likes.
    let child = unsafe { libc::fork() };
    match child {
        -1 => return Err(io::Error::last_os_error()),
        0 => {
            let status = i32::from(tell(input, names).is_err());
            // SAFETY: leaves without running anything of the parent's.
            unsafe { libc::_exit(status) }
        }
        _ => drop(input),
    }
    let mut text = String::new();
    let read = out.read_to_string(&mut text);
    // SAFETY: reaps our own child; no status is wanted.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
    read?;
    let numbers: Vec<u64> = text
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    if numbers.len() == names.len() {
        Ok(numbers)
    } else {
        Err(io::Error::other(text))
    }
}

/// In the child: writes the numbers, or why there are none.
fn tell(mut output: fs::File, names: &[&str]) -> io::Result<()> {
    match mount().and_then(|()| read_all(MOUNTED[0], names)) {
        Ok(numbers) => numbers
            .iter()
            .try_for_each(|number| writeln!(output, "{number}")),
        Err(error) => {
            write!(output, "{error}")?;
            Err(error)
        }
    }
}

fn mount() -> io::Result<()> {
    const NOTHING: *const libc::c_char = ptr::null();
    const PLACE: &CStr = c"/sys/kernel/tracing";
    // SAFETY: the strings are NUL-terminated; the rest are numbers.
    let done = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                NOTHING,
                c"/".as_ptr(),
                NOTHING,
                libc::MS_REC | libc::MS_PRIVATE,
                ptr::null(),
            ) == 0
            && libc::mount(
                c"tracefs".as_ptr(),
                PLACE.as_ptr(),
                c"tracefs".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
                ptr::null(),
            ) == 0
    };
    if done {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
