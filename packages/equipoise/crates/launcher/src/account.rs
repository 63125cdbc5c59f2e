//! Reads how a trial ended and which resources it used, as the kernel counts them.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use equipoise_kernel::child;
use equipoise_kernel::clock::monotonic_ns;

use crate::contain::KILL_TIMEOUT_NS;
use crate::conversation::{poll, watch};
use crate::protocol::Report;
use crate::reading::cannot_read;
use crate::spawn::Started;

/// Why the launcher stopped waiting for a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exited,
    TimedOut,
    /// The process was stopped, because it used a terminal that it does not have.
    Stopped,
    /// The client closed the pipe, or a signal stopped the launcher.
    Abandoned,
}

/// Reaps a trial, and reports its exit status and its resources.
pub fn report_end(started: &Started, ending: Ending, report: &mut Report) -> io::Result<()> {
    if ending != Ending::Exited && !ends_after_kill(started.process.as_raw_fd())? {
        report.set_usage_unknown("it did not end after SIGKILL: it is stuck in the kernel");
        return Ok(());
    }
    report.cpu = report.value_or_reason("cpu", last_cpu(started.pid));
    report.run_delay_s = report.value_or_reason("run_delay_s", run_delay_s(started.pid));
    match child::reap(started.pid) {
        Ok((status, usage)) => {
            report_usage(report, &usage);
            report.exit = status.code();
            report.signal = status.signal();
        }
        Err(error) => report.set_usage_unknown(&format!("its end could not be read: {error}")),
    }
    Ok(())
}

/// Whether a process ends within `KILL_TIMEOUT_NS` after SIGKILL was sent.
fn ends_after_kill(process: RawFd) -> io::Result<bool> {
    let deadline = monotonic_ns() + KILL_TIMEOUT_NS;
    loop {
        let mut watched = [watch(process, libc::POLLIN)];
        let now = monotonic_ns();
        poll(&mut watched, Some(deadline.saturating_sub(now)))?;
        if watched[0].revents != 0 {
            return Ok(true);
        }
        if now >= deadline {
            return Ok(false);
        }
    }
}

fn report_usage(report: &mut Report, usage: &libc::rusage) {
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
            report.set_unknown(field, reason);
        }
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 * 1e-6
}

/// Returns the last CPU of a child that has ended and was not reaped.
fn last_cpu(pid: libc::pid_t) -> Result<u32, String> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read(&path).map_err(cannot_read(&path))?;
    parse_last_cpu(&text).ok_or_else(|| format!("{path} names no processor"))
}

/// Returns the seconds for which a child's main thread was ready but waited for a CPU. The child
/// has ended and was not reaped.
fn run_delay_s(pid: libc::pid_t) -> Result<f64, String> {
    let path = format!("/proc/{pid}/schedstat");
    let text = fs::read_to_string(&path).map_err(cannot_read(&path))?;
    parse_delay_s(&text).ok_or_else(|| {
        "this kernel does not account for the wait for a CPU (CONFIG_SCHED_INFO)".to_owned()
    })
}

/// Returns the wait for a CPU: the second number of the line, in nanoseconds. If the third number
/// (how often the process ran) is 0, the kernel does not measure the wait.
fn parse_delay_s(schedstat: &str) -> Option<f64> {
    let mut numbers = schedstat.split_ascii_whitespace().skip(1);
    let delay_ns: u64 = numbers.next()?.parse().ok()?;
    let times_run: u64 = numbers.next()?.parse().ok()?;
    (times_run > 0).then_some(delay_ns as f64 * 1e-9)
}

/// Returns the last CPU of a process: field 39 of the line in `/proc/PID/stat`. Fields are counted
/// from the last bracket, because the name of the process may have brackets.
fn parse_last_cpu(stat: &[u8]) -> Option<u32> {
    const FIELDS_AFTER_NAME: usize = 36;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let field = rest.split_ascii_whitespace().nth(FIELDS_AFTER_NAME)?;
    field.parse().ok()
}

pub fn own_peak_bytes() -> Result<u64, String> {
    let path = "/proc/self/status";
    let text = fs::read_to_string(path).map_err(cannot_read(path))?;
    text.lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .and_then(|kibibytes| kibibytes.trim().parse::<u64>().ok())
        .map(|kibibytes| kibibytes * 1024)
        .ok_or_else(|| format!("{path} has no VmHWM"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cpu_is_found_whatever_the_name_of_the_process() {
        let after: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let line = format!("12 (a) b) {}\n", after.join(" "));
        assert_eq!(parse_last_cpu(line.as_bytes()), Some(39));
        assert_eq!(parse_last_cpu(b"12 (short) S 1"), None);
    }

    #[test]
    fn the_wait_for_a_cpu_is_in_seconds_and_unknown_if_the_kernel_does_not_measure_it() {
        assert_eq!(parse_delay_s("851365 56733 2\n"), Some(56733.0 * 1e-9));
        assert_eq!(parse_delay_s("0 0 0\n"), None);
        assert_eq!(parse_delay_s("851365"), None);
    }

    #[test]
    fn the_launchers_own_peak_memory_is_known() {
        assert!(own_peak_bytes().is_ok_and(|bytes| bytes > 0));
    }
}
