//! Reduces the launcher's own memory, and makes the kernel kill a trial first when memory runs out.

use std::fs;
use std::io;

use equipoise_kernel::call::check;

use crate::reading::cannot_read;

/// File with the preference of the kernel to kill this process if memory runs out.
const OOM_SCORE: &str = "/proc/self/oom_score_adj";
/// File with which a process resets its peak memory.
const CLEAR_REFS: &str = "/proc/self/clear_refs";

/// Makes the kernel kill the launcher and its trials before other processes if memory runs out. The
/// kernel kills the largest of them first, which is the trial.
pub fn prefer_trials_for_oom_kill() -> Result<(), String> {
    fs::write(OOM_SCORE, "1000").map_err(|error| format!("cannot write {OOM_SCORE}: {error}"))
}

/// Releases memory that the launcher needed only to start, and resets its peak memory.
///
/// The kernel never reports a lower peak memory for a trial than for the launcher. More than half
/// of the launcher's peak is pages of the C library. These pages stay in the page cache, so the
/// launcher gets them back at its next access.
pub fn shrink() -> Result<(), String> {
    /// Value of `clear_refs` in proc(5) that sets the peak to the present size.
    const RESET_PEAK: &str = "5";
    let path = "/proc/self/smaps";
    let maps = fs::read_to_string(path).map_err(cannot_read(path))?;
    for (start, end) in unwritten_file_mappings(&maps) {
        give_back(start, end).map_err(|error| format!("cannot give memory back: {error}"))?;
    }
    fs::write(CLEAR_REFS, RESET_PEAK).map_err(|error| format!("cannot write {CLEAR_REFS}: {error}"))
}

/// Returns the addresses of read-only mappings of files whose pages were never written to. (The
/// dynamic linker writes to some pages of a library.)
fn unwritten_file_mappings(smaps: &str) -> Vec<(usize, usize)> {
    let mut mappings = Vec::new();
    let mut candidate = None;
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("Anonymous:") {
            mappings.extend(candidate.take().filter(|_| size.trim() == "0 kB"));
        } else if is_first_line(line) {
            candidate = parse_read_only_file(line);
        }
    }
    mappings
}

/// Whether a line is the first line of a mapping. All other lines begin with a name and a colon.
fn is_first_line(line: &str) -> bool {
    let field = line.split_ascii_whitespace().next();
    field.is_some_and(|field| !field.ends_with(':'))
}

/// Returns the addresses in a line such as `7f00-7f10 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6`;
/// `None` if the mapping is writable or has no file.
fn parse_read_only_file(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let path = fields.nth(3)?;
    if !path.starts_with('/') || !(rights == "r-xp" || rights == "r--p") {
        return None;
    }
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?))
}

fn give_back(start: usize, end: usize) -> io::Result<()> {
    let address = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the pages of the file were never written to, so a later read loads the same bytes.
    check(unsafe { libc::madvise(address, end - start, libc::MADV_DONTNEED) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unwritten_file_mappings_are_given_back() {
        let smaps = "\
1000-2000 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6
Rss: 4 kB
Anonymous:             0 kB
VmFlags: rd ex
2000-3000 r--p 00000000 fe:00 12 /usr/lib/libc.so.6
Anonymous:             4 kB
3000-4000 rw-p 00000000 fe:00 12 /usr/lib/libc.so.6
Anonymous:             0 kB
4000-5000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
";
        assert_eq!(unwritten_file_mappings(smaps), [(0x1000, 0x2000)]);
    }

    #[test]
    fn a_program_still_works_after_shrinking() {
        shrink().expect("permitted");
        assert_eq!(format!("{:.1}", 1.5_f64.sqrt()), "1.2");
    }
}
