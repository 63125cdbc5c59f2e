//! `page_fault`, `mmap`: get memory from the kernel and write to it.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::memory::{Mapping, disable_huge_pages, page_size};
use crate::probe::{Class, OpenProbe, Parameter, Probe, ProbeOptions, Row, timed};
use crate::system::check_result;

pub const PAGE_FAULT: Probe = Probe {
    name: "page_fault",
    summary: "first write to a page of new anonymous memory (a minor fault)",
    ..Probe::latency(Class::Memory, open_page_fault)
};

/// Number of pages in one mapping: 16 MiB with pages of 4 KiB. With more pages, a page takes the
/// same time (docs/reference/primitives.md).
const PAGES_PER_MAPPING: usize = 4096;

fn open_page_fault(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    disable_huge_pages();
    let mut memory = FreshMemory::new(page_size()?)?;
    Ok(OpenProbe::latency(move |count| {
        let faults_before = minor_faults()?;
        let mut elapsed = Duration::ZERO;
        let mut remaining = to_usize(count);
        while remaining > 0 {
            let (pages, time) = memory.touch(remaining)?;
            elapsed += time;
            remaining -= pages;
        }
        check_faults(count, minor_faults()? - faults_before)?;
        Ok(elapsed)
    }))
}

/// Memory whose first pages were touched. Each batch continues with the next pages. So the time of
/// a page does not depend on the length of a batch.
struct FreshMemory {
    mapping: Mapping,
    page_bytes: usize,
    touched_pages: usize,
}

impl FreshMemory {
    fn new(page_bytes: usize) -> Result<Self, Problem> {
        Ok(Self {
            mapping: Mapping::new(PAGES_PER_MAPPING * page_bytes)?,
            page_bytes,
            touched_pages: 0,
        })
    }

    /// Touches up to `limit` new pages; returns their number, and the time.
    fn touch(&mut self, limit: usize) -> Result<(usize, Duration), Problem> {
        if self.touched_pages == PAGES_PER_MAPPING {
            *self = Self::new(self.page_bytes)?;
        }
        let pages = limit.min(PAGES_PER_MAPPING - self.touched_pages);
        let start = self.touched_pages * self.page_bytes;
        let started = Instant::now();
        self.mapping
            .touch_pages(self.page_bytes, start..start + pages * self.page_bytes);
        let elapsed = started.elapsed();
        self.touched_pages += pages;
        Ok((pages, elapsed))
    }
}

/// Checks that every page faulted. The kernel may have reclaimed memory of the probe, so a few more
/// faults are permitted.
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
    check_result("getrusage", result, 0)?;
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
    let page_bytes = page_size()?;
    let bytes = to_usize(options.size);
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            let mapping = Mapping::new(bytes)?;
            mapping.touch_pages(page_bytes, 0..bytes);
            mapping.give_back()
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_or_many_more_faults_than_pages_are_a_problem() {
        assert!(check_faults(1000, 1000).is_ok());
        for faults in [0, 2, 999, 2000] {
            let problem = check_faults(1000, faults).expect_err("not one for each");
            assert!(problem.to_string().contains(&format!("{faults} minor")));
        }
    }
}
