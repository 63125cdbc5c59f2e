//! Samples the stacks in which a command and its descendants use a processor, fault or wait.
//!
//! `sampling` opens the kernel's events. `spool` stores their records until the command has ended.
//! `replay` turns the records into stacks. `fifos` keeps interpreters from waiting for a FIFO.

mod fifos;
mod replay;
mod sampling;
mod spool;

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use equipoise_kernel::clock::monotonic_ns;
use equipoise_reporting::problem::Problem;

use crate::command::{self, End};
use crate::stacks::folded::Stacks;
use crate::stacks::map_file::{self, MapFiles};

use fifos::Fifos;
use replay::Replay;
use spool::{Cut, Spool};

pub use sampling::Sampling;

/// Largest delay of the kernel's clock for the times of files.
const FILE_CLOCK_STEP: Duration = Duration::from_millis(20);

/// The JSON document.
#[derive(Debug, Serialize)]
pub struct Report {
    source: &'static str,
    version: u32,
    wall_s: f64,
    end: End,
    frequency: u64,
    samples: u64,
    /// All seconds or page faults of the run, sampled or not.
    total: Option<f64>,
    #[serde(flatten)]
    stacks: Stacks,
    unseen: Vec<String>,
}

/// Runs the command, stores the records of the kernel, and then turns them into sampled stacks.
pub fn observe(
    sampling: Sampling,
    frequency: u64,
    command: Vec<OsString>,
) -> Result<Report, Problem> {
    let to_problem = Problem::system("the observed command");
    let paused = command::start_paused(command)?;
    let (mut rings, kernel_remark) = sampling::open(sampling, frequency, paused.pid)?;
    let mut spool = Spool::new().map_err(Problem::system("a temporary file"))?;
    let since = SystemTime::now() - FILE_CLOCK_STEP;
    let started_ns = monotonic_ns();
    let running = paused.start()?;
    let descriptor = running.descriptor().map_err(to_problem)?;
    let mut fifos = Fifos::new();
    while !rings.wait(&descriptor).map_err(to_problem)? {
        spool.fill(&mut rings, |record| fifos.add_or_remove_process(record));
        fifos.search_and_empty();
    }
    let wall_s = (monotonic_ns() - started_ns) as f64 * 1e-9;
    let map_files = MapFiles::new(since, map_file::user_of(running.pid));
    let end = running.wait().map_err(to_problem)?;
    spool.fill(&mut rings, |_| ());
    let event_count = rings.count().ok();
    drop(rings);
    let mut replay = Replay::new(sampling, map_files);
    let cut = spool.replay(|ns, record| replay.add(ns, record))?;
    let cut_remark = cut.map(|cut| cut_remark(&cut, started_ns));
    let result = replay.finish();
    let total = match sampling {
        Sampling::Time => event_count.map(|ns| ns as f64 * 1e-9),
        Sampling::Faults => event_count.map(|count| count as f64),
        Sampling::Waits => Some(result.waited_s),
    };
    let sampled = result.stacks.weight();
    let missing_remark = total.and_then(|total| sampling.missing_remark(sampled, total));
    let mut unseen = result.unseen;
    let is_partial = cut_remark.is_some() || kernel_remark.is_some();
    unseen.extend(cut_remark.into_iter().chain(kernel_remark));
    // A partial observation always lacks samples, so this remark would add nothing.
    unseen.extend(missing_remark.filter(|_| !is_partial));
    Ok(Report {
        source: sampling.source(),
        version: 1,
        wall_s,
        end,
        frequency,
        samples: result.samples,
        total,
        stacks: result.stacks,
        unseen,
    })
}

/// Returns the remark that the records end before the command.
fn cut_remark(cut: &Cut, started_ns: u64) -> String {
    let seconds = cut.ns.saturating_sub(started_ns) as f64 * 1e-9;
    format!(
        "everything after the first {seconds:.3} s is missing: {} could not be written: {}",
        spool::FILE_DESCRIPTION,
        cut.error
    )
}
