//! What a probe is: its description, its options, and the operation that it repeats.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use equipoise_reporting::problem::Problem;

/// One probe: what it measures, which options it takes, and how it is opened.
pub struct Probe {
    /// Name on the command line.
    pub name: &'static str,
    /// Table that the probe belongs to.
    pub class: Class,
    /// What one operation is.
    pub summary: &'static str,
    /// What is reported.
    pub metric: Metric,
    /// Where its processes or threads may be held; the first is the default.
    pub placements: &'static [Placement],
    /// The `--size` that it takes, in bytes.
    pub size: Option<Parameter>,
    /// The `--count` that it takes.
    pub count: Option<Parameter>,
    /// What the machine must have; empty if every Linux has it.
    pub needs: &'static str,
    /// Rows of `equipoise os` that it gives.
    pub rows: &'static [Row],
    /// Makes the operation ready.
    pub open: Open,
}

/// Makes the operation of a probe ready.
pub type Open = fn(&ProbeOptions) -> Result<OpenProbe, Problem>;

impl Probe {
    /// A probe of latency without a name: it takes no number, needs nothing and is held nowhere.
    pub const fn latency(open: Open) -> Self {
        Self {
            name: "",
            class: Class::SystemCalls,
            summary: "",
            metric: Metric::Latency,
            placements: &[Placement::None],
            size: None,
            count: None,
            needs: "",
            rows: &[],
            open,
        }
    }

    /// A probe of bandwidth without a name.
    pub const fn bandwidth(open: Open) -> Self {
        let mut probe = Self::latency(open);
        probe.metric = Metric::Bandwidth;
        probe
    }
}

/// Options with which a probe is opened.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// Where its processes or threads are held.
    pub placement: Placement,
    /// Bytes, or 0 for a probe that takes none.
    pub size: u64,
    /// Number of things, or 0 for a probe that counts nothing.
    pub count: u64,
    /// Folder for files, if the command line names one.
    pub folder: Option<PathBuf>,
}

/// The tables of `equipoise os`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Making and ending processes.
    Process,
    /// Making and ending threads, and handing over between them.
    Thread,
    /// System calls that do next to nothing.
    SystemCalls,
    /// Signals and faults that become signals.
    Signals,
    /// Between processes.
    Ipc,
    /// Switching from one process to the next.
    ContextSwitch,
    /// Memory, and the kernel's part in it.
    Memory,
    /// Files.
    Files,
    /// The clock and the timer.
    Time,
}

impl Class {
    /// Returns the name in the listing.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Thread => "thread",
            Self::SystemCalls => "system_calls",
            Self::Signals => "signals",
            Self::Ipc => "ipc",
            Self::ContextSwitch => "context_switch",
            Self::Memory => "memory",
            Self::Files => "files",
            Self::Time => "time",
        }
    }
}

/// What a probe reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Seconds of one operation.
    Latency,
    /// Bytes per second.
    Bandwidth,
}

impl Metric {
    /// Returns the name in the listing and in the file of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency_s",
            Self::Bandwidth => "bandwidth_bytes_per_s",
        }
    }
}

/// Where the processes or threads of a probe are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the kernel puts them.
    None,
    /// All on one CPU.
    SameCpu,
    /// The two sides on two CPUs.
    AcrossCpus,
}

impl Placement {
    /// Where the two sides of a probe may be held.
    pub const TWO_SIDES: &[Self] = &[Self::SameCpu, Self::AcrossCpus];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SameCpu => "same_cpu",
            Self::AcrossCpus => "across_cpus",
        }
    }
}

/// A number that a probe takes.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// What it is the number of.
    pub summary: &'static str,
    /// Value without the option.
    pub default: u64,
    /// Smallest value that makes sense.
    pub minimum: u64,
    /// Largest value that is allowed.
    pub maximum: u64,
}

/// A row of `equipoise os`: a probe with certain options.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name of the condition.
    pub name: &'static str,
    /// `--placement`, unless it is the default.
    pub placement: Option<Placement>,
    /// `--size`, unless it is the default.
    pub size: Option<u64>,
    /// `--count`, unless it is the default.
    pub count: Option<u64>,
}

impl Row {
    /// A row of a probe with its default options.
    pub const fn plain(name: &'static str) -> Self {
        Self {
            name,
            placement: None,
            size: None,
            count: None,
        }
    }

    /// The same row with its processes or threads held at a placement.
    pub const fn at(self, placement: Placement) -> Self {
        Self {
            placement: Some(placement),
            ..self
        }
    }

    /// The same row with another size.
    pub const fn of_size(self, bytes: u64) -> Self {
        Self {
            size: Some(bytes),
            ..self
        }
    }

    /// The same row with another count.
    pub const fn of_count(self, count: u64) -> Self {
        Self {
            count: Some(count),
            ..self
        }
    }
}

/// A probe that is ready.
pub struct OpenProbe {
    /// The operation; dropping it frees everything that opening took.
    pub operation: Box<dyn Operation>,
    /// Bytes that one operation moves; 0 where the metric is not a bandwidth.
    pub bytes: u64,
    /// Facts that are not numbers, by name.
    pub facts: Vec<(&'static str, String)>,
}

impl OpenProbe {
    /// An operation that is reported as `latency_s`.
    pub fn latency(operation: impl Operation + 'static) -> Self {
        Self::bandwidth(0, operation)
    }

    /// An operation that moves `bytes`, reported as `bandwidth_bytes_per_s`.
    pub fn bandwidth(bytes: u64, operation: impl Operation + 'static) -> Self {
        Self {
            operation: Box::new(operation),
            bytes,
            facts: Vec::new(),
        }
    }

    /// Adds a fact.
    pub fn with_fact(mut self, name: &'static str, value: String) -> Self {
        self.facts.push((name, value));
        self
    }
}

/// Something that is repeated and timed.
pub trait Operation {
    /// Repeats the operation, checks every result, and returns the time that counts.
    ///
    /// # Errors
    /// A result is wrong.
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem>;
}

impl<Repeat: FnMut(u64) -> Result<Duration, Problem>> Operation for Repeat {
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem> {
        self(count)
    }
}

/// Repeats some work one after the other, and returns the time of all of it.
///
/// The loop itself costs less than a nanosecond an operation (docs/os.md).
///
/// # Errors
/// The first problem of the work.
pub fn timed(
    count: u64,
    mut work: impl FnMut() -> Result<(), Problem>,
) -> Result<Duration, Problem> {
    let started = Instant::now();
    for _ in 0..count {
        work()?;
    }
    Ok(started.elapsed())
}
