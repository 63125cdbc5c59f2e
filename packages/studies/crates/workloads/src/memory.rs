//! Memory of the process, as the kernel counts it.

use std::fs::read_to_string;

use crate::metrics::Report;

/// Bytes that were resident before the work; `None` if the kernel does not report them.
pub struct Held(Option<u64>);

impl Held {
    /// Reads the resident memory.
    pub fn now() -> Self {
        Self(resident())
    }

    /// Returns the resident bytes beyond those of the first reading.
    pub fn since(&self) -> Option<u64> {
        Some(resident()?.saturating_sub(self.0?))
    }

    /// Adds `peak_bytes` and `retained_bytes`: the highest and the present number of resident bytes
    /// beyond those of the first reading. To be called when everything is freed.
    #[must_use]
    pub fn add_to(&self, report: Report) -> Report {
        let retained = self.since();
        // The kernel's high-water mark lags behind by some pages for each processor.
        let peak = self.peak_since().max(retained);
        report
            .bytes("peak_bytes", peak)
            .bytes("retained_bytes", retained)
    }

    fn peak_since(&self) -> Option<u64> {
        let peak = kilobytes(&read_to_string("/proc/self/status").ok()?, "VmHWM:")?;
        Some(peak.saturating_sub(self.0?))
    }
}

/// Resident bytes, counted page by page: the counters in `/proc/self/statm` lag behind by some
/// pages for each processor.
fn resident() -> Option<u64> {
    kilobytes(&read_to_string("/proc/self/smaps_rollup").ok()?, "Rss:")
}

/// The bytes in the line of a file of /proc that starts with the name.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let number: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(number * 1024)
}

/// Minor page faults of the process and all its threads so far.
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

    use super::{Held, kilobytes, minor_faults};

    #[test]
    fn a_line_of_proc_is_read_in_bytes() {
        assert_eq!(
            kilobytes("VmPeak:\t 9 kB\nVmHWM:\t 12 kB\n", "VmHWM:"),
            Some(12 * 1024)
        );
        assert_eq!(kilobytes("VmPeak:\t 9 kB\n", "VmHWM:"), None);
    }

    /// Set in a process that runs only one test.
    const ALONE: &str = "EQUIPOISE_TEST_ALONE";

    #[test]
    fn memory_that_is_touched_is_held_and_costs_faults() {
        if std::env::var_os(ALONE).is_none() {
            // Other tests of this process free theirs meanwhile.
            return in_a_process_of_its_own(
                "memory::tests::memory_that_is_touched_is_held_and_costs_faults",
            );
        }
        let held = Held::now();
        let faults = minor_faults();
        let bytes = 64 << 20;
        let block = std::hint::black_box(vec![1_u8; bytes]);
        assert!(held.since().unwrap() >= bytes as u64);
        // The mark lags behind by a batch of pages for each processor.
        assert!(held.peak_since().unwrap() >= (bytes / 4 * 3) as u64);
        assert!(minor_faults() > faults);
        drop(block);
    }

    fn in_a_process_of_its_own(test: &str) {
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&ran.stdout);
        assert!(output.contains("1 passed"), "{output}");
    }
}
