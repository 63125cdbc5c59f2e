//! Probe `page_fault`: the first write to a page of new memory.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::mapping::{Mapping, page_size, without_huge_pages};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row};
use crate::system::expect;

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "page_fault",
    class: Class::Memory,
    words: "first write to a page of new anonymous memory (a minor fault)",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "",
    rows: &[Row::plain("page_fault")],
    open,
};

/// Pages that are mapped at once: 16 MiB of 4 KiB each. From there on the cost of one does not
/// change with their number (docs/os.md).
const AT_ONCE: usize = 4096;

fn open(_: &Asked) -> Result<Opened, Problem> {
    without_huge_pages();
    let mut room = Room::new(page_size()?)?;
    Ok(Opened::latency(move |count| {
        let before = minor_faults()?;
        let mut took = Duration::ZERO;
        let mut left = to_usize(count);
        while left > 0 {
            let (pages, time) = room.touch(left)?;
            took += time;
            left -= pages;
        }
        see_that_each_faulted(count, minor_faults()? - before)?;
        Ok(took)
    }))
}

/// Memory of which some pages were touched. It is used up from batch to batch, so that the
/// length of a batch does not show in what a page costs.
struct Room {
    mapping: Mapping,
    page: usize,
    touched: usize,
}

impl Room {
    fn new(page: usize) -> Result<Self, Problem> {
        Ok(Self {
            mapping: Mapping::new(AT_ONCE * page)?,
            page,
            touched: 0,
        })
    }

    /// Touches as many new pages as are wanted, or as there are; says how many and how long.
    fn touch(&mut self, wanted: usize) -> Result<(usize, Duration), Problem> {
        if self.touched == AT_ONCE {
            *self = Self::new(self.page)?;
        }
        let pages = wanted.min(AT_ONCE - self.touched);
        let from = self.touched * self.page;
        let started = Instant::now();
        self.mapping
            .touch_each(self.page, from..from + pages * self.page);
        let took = started.elapsed();
        self.touched += pages;
        Ok((pages, took))
    }
}

/// Every page must fault; the probe itself may now and then, where its own memory was reclaimed.
fn see_that_each_faulted(count: u64, faults: u64) -> Result<(), Problem> {
    if (count..=count + count / 100 + 16).contains(&faults) {
        return Ok(());
    }
    Err(Problem::failure(format!(
        "{count} pages were touched with {faults} minor faults"
    )))
}

fn minor_faults() -> Result<u64, Problem> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the usage can be written.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    expect("getrusage", result, 0)?;
    // SAFETY: all-zero is valid, and the call filled it.
    let faults = unsafe { usage.assume_init() }.ru_minflt;
    Ok(u64::try_from(faults).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_a_fault_of_their_own_are_a_problem() {
        assert!(see_that_each_faulted(1000, 1000).is_ok());
        for faults in [0, 2, 999, 2000] {
            let problem = see_that_each_faulted(1000, faults).expect_err("not one for each");
            assert!(problem.to_string().contains(&format!("{faults} minor")));
        }
    }
}
