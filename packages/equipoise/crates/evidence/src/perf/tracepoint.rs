//! The numbers of tracepoints, which only a mounted tracefs has.

use std::ffi::CStr;
use std::fs;
use std::io::{self, PipeWriter, Read, Write};
use std::ptr;

use equipoise_kernel::call::check;

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Returns the numbers of tracepoints (`raw_syscalls/sys_enter`), in their order.
///
/// Where tracefs is not mounted, a child mounts it in a private mount namespace, which ends with
/// the child. The error is the reason why the numbers cannot be read.
pub fn numbers(names: &[&str]) -> Result<Vec<u64>, String> {
    let mounted = MOUNTED
        .iter()
        .find_map(|folder| read_all(folder, names).ok());
    mounted
        .map_or_else(|| from_private_mount(names), Ok)
        .map_err(|error| format!("tracefs cannot be read: {error}"))
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
    let (mut out, input) = io::pipe()?;
    // SAFETY: this process has one thread, so the child may use everything.
    let child = unsafe { libc::fork() };
    match check(child)? {
        0 => {
            let status = i32::from(report(input, names).is_err());
            // SAFETY: leaves without running anything of the parent's.
            unsafe { libc::_exit(status) }
        }
        _ => drop(input),
    }
    let mut text = String::new();
    let read = out.read_to_string(&mut text);
    equipoise_kernel::child::discard(child);
    read?;
    let words = text.split_ascii_whitespace();
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    if numbers.len() != names.len() {
        return Err(io::Error::other(text));
    }
    Ok(numbers)
}

/// In the child: writes the numbers, or the reason why there are none.
fn report(mut output: PipeWriter, names: &[&str]) -> io::Result<()> {
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
    done.then_some(()).ok_or_else(io::Error::last_os_error)
}
