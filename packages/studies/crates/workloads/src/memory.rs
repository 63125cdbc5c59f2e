//! Reads the resident memory and the page faults of the process.

use std::fs::read_to_string;

use crate::metrics::Report;

/// Resident bytes before the work; `None` if the kernel does not report them.
pub struct MemoryBaseline(Option<u64>);

impl MemoryBaseline {
    pub fn now() -> Self {
        Self(resident_bytes())
    }

    /// Returns the present resident bytes minus the resident bytes before the work.
    pub fn bytes_since(&self) -> Option<u64> {
        Some(resident_bytes()?.saturating_sub(self.0?))
    }

    /// Adds `peak_bytes` and `retained_bytes` to a report: the largest and the present resident
    /// bytes, minus the bytes before the work. Call this after everything was freed.
    #[must_use]
    pub fn add_to(&self, report: Report) -> Report {
        let retained = self.bytes_since();
        // The kernel updates the peak late, so the peak may be below the present number.
        let peak = self.peak_since().max(retained);
        report
            .bytes("peak_bytes", peak)
            .bytes("retained_bytes", retained)
    }

    fn peak_since(&self) -> Option<u64> {
        let peak = bytes_in_line(&read_to_string("/proc/self/status").ok()?, "VmHWM:")?;
        Some(peak.saturating_sub(self.0?))
    }
}

/// Returns the resident bytes. The kernel counts all pages for this file; the counters in
/// `/proc/self/statm` are late by some pages for each processor.
fn resident_bytes() -> Option<u64> {
    bytes_in_line(&read_to_string("/proc/self/smaps_rollup").ok()?, "Rss:")
}

/// Returns the bytes in the line that begins with `name`; the number in the line is in kB.
fn bytes_in_line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let number: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(number * 1024)
}

pub fn minor_faults() -> u64 {
    // SAFETY: zero is a valid value of every field.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing; the call cannot fail with this argument.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    u64::try_from(usage.ru_minflt).expect("a count is not negative")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{MemoryBaseline, bytes_in_line, minor_faults};

    #[test]
    fn a_line_in_kilobytes_is_returned_in_bytes() {
        assert_eq!(
            bytes_in_line("VmPeak:\t 9 kB\nVmHWM:\t 12 kB\n", "VmHWM:"),
            Some(12 * 1024)
        );
        assert_eq!(bytes_in_line("VmPeak:\t 9 kB\n", "VmHWM:"), None);
    }

    /// Environment variable that is set in a process that runs only one test.
    const SINGLE_TEST: &str = "EQUIPOISE_TEST_ALONE";

    #[test]
    fn touched_memory_is_resident_and_causes_faults() {
        if std::env::var_os(SINGLE_TEST).is_none() {
            // Other tests of this process allocate and free memory meanwhile.
            return run_in_new_process(
                "memory::tests::touched_memory_is_resident_and_causes_faults",
            );
        }
        let baseline = MemoryBaseline::now();
        let faults = minor_faults();
        let bytes = 64 << 20;
        let block = std::hint::black_box(vec![1_u8; bytes]);
        assert!(baseline.bytes_since().unwrap() >= bytes as u64);
        // The kernel updates its peak late, by some pages for each processor.
        assert!(baseline.peak_since().unwrap() >= (bytes / 4 * 3) as u64);
        assert!(minor_faults() > faults);
        drop(block);
    }

    fn run_in_new_process(test: &str) {
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(SINGLE_TEST, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&ran.stdout);
        assert!(output.contains("1 passed"), "{output}");
    }
}
