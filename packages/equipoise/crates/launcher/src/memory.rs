//! The launcher's own memory, and the process that the kernel ends first when memory runs out.

use std::fs;
use std::io;

use equipoise_kernel::call::check;

use crate::reading::cannot_read;

const OOM_SCORE: &str = "/proc/self/oom_score_adj";
const CLEAR: &str = "/proc/self/clear_refs";

/// Makes the launcher, and with it each trial, the kernel's first choice when memory runs out. Of
/// these the kernel ends the largest: the trial, and never the launcher or the tool that drives it.
pub fn offer_first() -> Result<(), String> {
    fs::write(OOM_SCORE, "1000").map_err(|error| format!("cannot write {OOM_SCORE}: {error}"))
}

/// Releases the memory that only the start needed, and resets the peak.
///
/// No trial's peak can be below the launcher's peak, and more than half of that is pages of the C
/// library that the dynamic linker touched, or that the kernel mapped around them. They stay in the
/// page cache; a minor fault maps a page again when it is needed.
pub fn shrink() -> Result<(), String> {
    const FORGET_PEAK: &str = "5";
    let path = "/proc/self/smaps";
    let maps = fs::read_to_string(path).map_err(cannot_read(path))?;
    for (start, end) in pure_file_mappings(&maps) {
        give_back(start, end).map_err(|error| format!("cannot give memory back: {error}"))?;
    }
    fs::write(CLEAR, FORGET_PEAK).map_err(|error| format!("cannot write {CLEAR}: {error}"))
}

/// Mappings with only the content of their file: read-only, and without a page that was ever
/// written to (relocation writes to some).
fn pure_file_mappings(smaps: &str) -> Vec<(usize, usize)> {
    let mut mappings = Vec::new();
    let mut candidate = None;
    for line in smaps.lines() {
        if let Some(size) = line.strip_prefix("Anonymous:") {
            mappings.extend(candidate.take().filter(|_| size.trim() == "0 kB"));
        } else if is_head(line) {
            candidate = read_only_file(line);
        }
    }
    mappings
}

/// Whether a line begins a mapping; the others begin with a name and a colon.
fn is_head(line: &str) -> bool {
    let word = line.split_ascii_whitespace().next();
    word.is_some_and(|word| !word.ends_with(':'))
}

/// Returns the addresses in a line such as `7f00-7f10 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6`.
fn read_only_file(line: &str) -> Option<(usize, usize)> {
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
    // SAFETY: the pages are those of the file and were never written to; a later read brings
    // the same bytes back.
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
        assert_eq!(pure_file_mappings(smaps), [(0x1000, 0x2000)]);
    }

    #[test]
    fn a_shrunk_program_goes_on() {
        shrink().expect("permitted");
        assert_eq!(format!("{:.1}", 1.5_f64.sqrt()), "1.2");
    }
}
