//! Memory to work with: how much, and what is common to the probes that go through it.

use std::fs::read_to_string;
use std::path::Path;

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::probe::Parameter;

/// How much is read, written or copied at once.
pub const MEMORY: Parameter = Parameter {
    words: "bytes of memory",
    default: 64 << 20,
    least: 64,
    most: 16 << 30,
};

/// So much free memory for each byte that is wanted: whoever shares the machine needs some too.
const MARGIN: u64 = 4;

/// The bytes as a size, if the machine has room for them.
///
/// # Errors
/// Unavailable where it has not.
pub fn room_for(bytes: u64) -> Result<usize, Problem> {
    match free() {
        Some(free) if free < bytes.saturating_mul(MARGIN) => Err(Problem::unavailable(format!(
            "it works on {bytes} bytes and wants {MARGIN} times as many free, but {free} are; \
             take a smaller --size"
        ))),
        _ => Ok(to_usize(bytes)),
    }
}

/// The sum, by as many additions at once as the processor has.
pub fn added_up(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| sum.wrapping_add(word))
}

/// Bytes that the machine, and the container if there is one, still give; `None` if that cannot
/// be read.
fn free() -> Option<u64> {
    let machine = in_machine(&read_to_string("/proc/meminfo").ok()?)?;
    Some(in_container().map_or(machine, |container| container.min(machine)))
}

fn in_machine(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// What the cgroup of version 2 leaves, if it has a limit.
fn in_container() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = Path::new("/sys/fs/cgroup").join(group);
    let number = |name| -> Option<u64> {
        let text = read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::{in_machine, room_for};

    #[test]
    fn the_free_memory_is_read_in_bytes() {
        let meminfo = "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:    3 kB\n";
        assert_eq!(in_machine(meminfo), Some(3 * 1024));
        assert_eq!(in_machine("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn more_than_the_machine_has_is_unavailable() {
        assert!(room_for(1 << 60).unwrap_err().is_unavailable());
        assert_eq!(room_for(4096).unwrap(), 4096);
    }
}
