//! Samples the stacks in which a command and its descendants use a processor, fault, or wait.

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

/// Largest delay of file times, which are those of the kernel's last tick.
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
    /// All seconds or page faults of the run, whether sampled or not.
    total: Option<f64>,
    #[serde(flatten)]
    stacks: Stacks,
    unseen: Vec<String>,
}

/// Runs the command and returns its sampled stacks.
pub fn observe(
    sampling: Sampling,
    frequency: u64,
    command: Vec<OsString>,
) -> Result<Report, Problem> {
    let refused = Problem::system("the observed command");
    let paused = command::start_paused(command)?;
    let (mut rings, outside_kernel) = sampling::open(sampling, frequency, paused.pid)?;
    let mut spool = Spool::new().map_err(Problem::system("a temporary file"))?;
    let since = SystemTime::now() - FILE_CLOCK_STEP;
    let started_ns = monotonic_ns();
    let running = paused.start()?;
    let descriptor = running.descriptor().map_err(refused)?;
    let mut fifos = Fifos::new();
    while !rings.wait(&descriptor).map_err(refused)? {
        spool.fill(&mut rings, |record| fifos.record_process(record));
        fifos.read();
    }
    let wall_s = (monotonic_ns() - started_ns) as f64 * 1e-9;
    let map_files = MapFiles::new(since, map_file::user_of(running.pid));
    let end = running.wait().map_err(refused)?;
    spool.fill(&mut rings, |_| ());
    let counted = rings.count().ok();
    drop(rings);
    let mut replay = Replay::new(sampling, map_files);
    let cut = spool.replay(|ns, record| replay.add(ns, record))?;
    let cut = cut.map(|cut| cut_remark(&cut, started_ns));
    let finished = replay.finish();
    let total = match sampling {
        Sampling::Time => counted.map(|ns| ns as f64 * 1e-9),
        Sampling::Faults => counted.map(|count| count as f64),
        Sampling::Waits => Some(finished.waited_s),
    };
    let missing = total.and_then(|total| sampling.missing_remark(finished.stacks.weight(), total));
    let mut unseen = finished.unseen;
    let is_partial = cut.is_some() || outside_kernel.is_some();
    unseen.extend(cut.into_iter().chain(outside_kernel));
    // A partial observation always misses samples, so a remark about that would add nothing.
    unseen.extend(missing.filter(|_| !is_partial));
    Ok(Report {
        source: sampling.source(),
        version: 1,
        wall_s,
        end,
        frequency,
        samples: finished.samples,
        total,
        stacks: finished.stacks,
        unseen,
    })
}

/// Returns the remark that the records end before the command.
fn cut_remark(cut: &Cut, started_ns: u64) -> String {
    let seconds = cut.ns.saturating_sub(started_ns) as f64 * 1e-9;
    format!(
        "everything after the first {seconds:.3} s: {}: {}",
        spool::FILE_NAME,
        cut.error
    )
}
