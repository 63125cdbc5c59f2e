//! What a trial consumed, as the kernel accounts for it.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

use crate::protocol::Report;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
}

impl End {
    /// Out of the status that `wait` gives.
    #[must_use]
    pub fn of(status: libc::c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(libc::WTERMSIG(status))
        } else {
            Self::Exit(libc::WEXITSTATUS(status))
        }
    }
}

/// Takes leave of a child that has ended: how, and what it and the children that it waited
/// for consumed.
///
/// # Errors
/// What `wait4` says.
pub fn reap(pid: libc::pid_t) -> io::Result<(End, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both places are valid for writing.
        let reaped = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if reaped == pid {
            // SAFETY: all-zero is a valid rusage, and the call filled it.
            return Ok((End::of(status), unsafe { usage.assume_init() }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Enters what was consumed into the report.
pub fn enter_usage(report: &mut Report, usage: &libc::rusage) {
    let count = |value: libc::c_long| u64::try_from(value).ok();
    report.user_s = Some(seconds(usage.ru_utime));
    report.sys_s = Some(seconds(usage.ru_stime));
    report.max_rss_bytes = count(usage.ru_maxrss).map(|kibibytes| kibibytes * 1024);
    report.minor_faults = count(usage.ru_minflt);
    report.major_faults = count(usage.ru_majflt);
    report.voluntary_switches = count(usage.ru_nvcsw);
    report.involuntary_switches = count(usage.ru_nivcsw);
    if Path::new("/proc/self/io").exists() {
        report.block_reads = count(usage.ru_inblock);
        report.block_writes = count(usage.ru_oublock);
    } else {
        let reason = "this kernel does not account for block I/O (no /proc/self/io)";
        for field in ["block_reads", "block_writes"] {
            report.unknown.insert(field, reason.to_owned());
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 * 1e-6
}

/// The CPU on which a child that has ended, but was not reaped, ran last.
///
/// # Errors
/// In words, if the kernel does not say.
pub fn last_cpu(pid: libc::pid_t) -> Result<u32, String> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
    processor(&text).ok_or_else(|| format!("{path} names no processor"))
}

/// For how long the main thread of a child that has ended, but was not reaped, could have run
/// but waited for a CPU; in seconds.
///
/// # Errors
/// In words, if the kernel does not say.
pub fn run_delay_s(pid: libc::pid_t) -> Result<f64, String> {
    let path = format!("/proc/{pid}/schedstat");
    let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
    delay_s(&text).ok_or_else(|| {
        "this kernel does not account for the wait for a CPU (CONFIG_SCHED_INFO)".to_owned()
    })
}

/// The second number, in nanoseconds. The third, how often it ran, is 0 for what has run only
/// where the kernel does not account for any of them.
fn delay_s(schedstat: &str) -> Option<f64> {
    let mut numbers = schedstat
        .split_ascii_whitespace()
        .map(|number| number.parse::<u64>().ok());
    let delay_ns = numbers.nth(1)??;
    let times_run = numbers.next()??;
    (times_run > 0).then_some(delay_ns as f64 * 1e-9)
}

/// Field 39 of the line, counted behind the name in brackets, which may hold anything.
fn processor(stat: &[u8]) -> Option<u32> {
    const FIELDS_AFTER_NAME: usize = 36;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_ascii_whitespace()
        .nth(FIELDS_AFTER_NAME)?
        .parse()
        .ok()
}

/// The launcher's own peak of resident memory, in bytes.
///
/// # Errors
/// In words, if the kernel does not say.
pub fn own_peak_bytes() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/self/status")
        .map_err(|error| format!("cannot read /proc/self/status: {error}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .and_then(|kibibytes| kibibytes.trim().parse::<u64>().ok())
        .map(|kibibytes| kibibytes * 1024)
        .ok_or_else(|| "/proc/self/status has no VmHWM".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_found_behind_any_name() {
        let after: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let line = format!("12 (a) b) {}\n", after.join(" "));
        assert_eq!(processor(line.as_bytes()), Some(39));
        assert_eq!(processor(b"12 (short) S 1"), None);
    }

    #[test]
    fn the_wait_for_a_cpu_is_in_seconds_and_unknown_where_nothing_is_accounted_for() {
        assert_eq!(delay_s("851365 56733 2\n"), Some(56733.0 * 1e-9));
        assert_eq!(delay_s("0 0 0\n"), None);
        assert_eq!(delay_s("851365"), None);
    }

    #[test]
    fn its_own_peak_is_known() {
        assert!(own_peak_bytes().is_ok_and(|bytes| bytes > 0));
    }
}
