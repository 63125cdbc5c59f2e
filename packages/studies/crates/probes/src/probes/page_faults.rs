//! `page_fault`, `mmap`: memory from the kernel, and its first use.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::memory::{Mapping, page_size, without_huge_pages};
use crate::probe::{Class, OpenProbe, Parameter, Probe, ProbeOptions, Row, timed};
use crate::system::expect;

pub const PAGE_FAULT: Probe = Probe {
    name: "page_fault",
    summary: "first write to a page of new anonymous memory (a minor fault)",
    ..Probe::latency(Class::Memory, open_page_fault)
};

/// Pages that are mapped at once: 16 MiB of 4 KiB each. With more pages the cost of one does not
/// change (docs/reference/primitives.md).
const AT_ONCE: usize = 4096;

fn open_page_fault(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    without_huge_pages();
    let mut room = Room::new(page_size()?)?;
    Ok(OpenProbe::latency(move |count| {
        let before = minor_faults()?;
        let mut took = Duration::ZERO;
        let mut left = to_usize(count);
        while left > 0 {
            let (pages, time) = room.touch(left)?;
            took += time;
            left -= pages;
        }
        check_faults(count, minor_faults()? - before)?;
        Ok(took)
    }))
}

/// Memory of which some pages were touched. Each batch uses its next pages, so that the cost of a
/// page does not depend on the length of a batch.
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

    /// Touches up to `limit` new pages; returns their number and the time.
    fn touch(&mut self, limit: usize) -> Result<(usize, Duration), Problem> {
        if self.touched == AT_ONCE {
            *self = Self::new(self.page)?;
        }
        let pages = limit.min(AT_ONCE - self.touched);
        let from = self.touched * self.page;
        let started = Instant::now();
        self.mapping
            .touch_each(self.page, from..from + pages * self.page);
        let took = started.elapsed();
        self.touched += pages;
        Ok((pages, took))
    }
}

/// Every page must fault. The probe may cause a few more faults, if its own memory was reclaimed.
fn check_faults(count: u64, faults: u64) -> Result<(), Problem> {
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

pub const MMAP: Probe = Probe {
    name: "mmap",
    summary: "mmap of anonymous memory, one write to each of its pages, munmap",
    size: Some(Parameter {
        summary: "bytes that are mapped",
        default: 64 << 10,
        minimum: 1,
        maximum: 1 << 40,
    }),
    rows: &[
        Row::named("_4k").of_size(4 << 10),
        Row::named("_64k").of_size(64 << 10),
        Row::named("_1m").of_size(1 << 20),
        Row::named("_16m").of_size(16 << 20),
    ],
    ..Probe::latency(Class::Memory, open_mmap)
};

fn open_mmap(options: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let page = page_size()?;
    let bytes = to_usize(options.size);
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            let mapping = Mapping::new(bytes)?;
            mapping.touch_each(page, 0..bytes);
            mapping.give_back()
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_without_a_fault_of_their_own_are_a_problem() {
        assert!(check_faults(1000, 1000).is_ok());
        for faults in [0, 2, 999, 2000] {
            let problem = check_faults(1000, faults).expect_err("not one for each");
            assert!(problem.to_string().contains(&format!("{faults} minor")));
        }
    }
}
