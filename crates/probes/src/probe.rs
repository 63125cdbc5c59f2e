//! What a probe is.

use std::time::{Duration, Instant};

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;

/// One probe: what it measures, how it is asked for, and how it is done.
pub struct Probe {
    /// What it is called on the command line.
    pub name: &'static str,
    /// The table that it belongs to.
    pub class: Class,
    /// What one operation is.
    pub words: &'static str,
    /// What is reported.
    pub metric: Metric,
    /// Where its processes or threads may be held; the first is the default.
    pub placements: &'static [Placement],
    /// The `--size` that it takes, in bytes.
    pub size: Option<Parameter>,
    /// The `--count` that it takes.
    pub count: Option<Parameter>,
    /// What must be there, in words; empty if every Linux has it.
    pub needs: &'static str,
    /// The rows of `equipoise os` that it gives.
    pub rows: &'static [Row],
    /// Makes everything ready.
    pub open: fn(&Asked) -> Result<Opened, Problem>,
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
    /// From one process to the next.
    ContextSwitch,
    /// Memory, and the kernel's part in it.
    Memory,
    /// Files.
    Files,
    /// The clock and the timer.
    Time,
}

impl Class {
    /// Its name in the listing.
    pub fn word(self) -> &'static str {
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
    /// Bytes a second.
    Bandwidth,
}

impl Metric {
    /// Its name in the listing and in the file of metrics.
    pub fn word(self) -> &'static str {
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
    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SameCpu => "same_cpu",
            Self::AcrossCpus => "across_cpus",
        }
    }
}

/// A number that a probe can be given.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// What it is the number of.
    pub words: &'static str,
    /// Without the option.
    pub default: u64,
    /// The least that makes sense.
    pub least: u64,
    /// The most that is allowed.
    pub most: u64,
}

/// A row of `equipoise os`: a probe with certain options.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name of the condition.
    pub name: &'static str,
    /// `--placement`, unless it is the default.
    pub placement: Option<Placement>,
    /// `--size`, unless it is the default.
    pub size: Option<u64>,
    /// `--count`, unless it is the default.
    pub count: Option<u64>,
}

impl Row {
    /// A probe as it is by default.
    pub const fn plain(name: &'static str) -> Self {
        Self {
            name,
            placement: None,
            size: None,
            count: None,
        }
    }

    /// The same with its processes or threads held there.
    pub const fn at(self, placement: Placement) -> Self {
        Self {
            placement: Some(placement),
            ..self
        }
    }

    /// The same with so many bytes.
    pub const fn of_size(self, bytes: u64) -> Self {
        Self {
            size: Some(bytes),
            ..self
        }
    }

    /// The same with so many of what the probe counts.
    pub const fn of_count(self, count: u64) -> Self {
        Self {
            count: Some(count),
            ..self
        }
    }
}

/// A probe that is ready.
pub struct Opened {
    /// What is repeated; dropping it undoes what was made ready.
    pub operation: Box<dyn Operation>,
    /// Bytes that one operation moves; 0 where the metric is no bandwidth.
    pub bytes: u64,
    /// What was found out on the way and is no number.
    pub facts: Vec<(&'static str, String)>,
}

impl Opened {
    /// For `latency_s`.
    pub fn latency(operation: impl Operation + 'static) -> Self {
        Self::bandwidth(0, operation)
    }

    /// For `bandwidth_bytes_per_s`, where one operation moves so many bytes.
    pub fn bandwidth(bytes: u64, operation: impl Operation + 'static) -> Self {
        Self {
            operation: Box::new(operation),
            bytes,
            facts: Vec::new(),
        }
    }

    /// Adds what was found out.
    pub fn with_fact(mut self, name: &'static str, value: String) -> Self {
        self.facts.push((name, value));
        self
    }
}

/// What is repeated.
pub trait Operation {
    /// Does it so many times, checks every result, and gives back what counts of the time that
    /// this took.
    ///
    /// # Errors
    /// If a result is wrong.
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem>;
}

impl<Repeat: FnMut(u64) -> Result<Duration, Problem>> Operation for Repeat {
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem> {
        self(count)
    }
}

/// Does the work so many times, one after the other, and gives back how long all of it took.
///
/// The loop itself costs less than a nanosecond an operation (docs/os.md).
///
/// # Errors
/// The first problem that the work has.
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
