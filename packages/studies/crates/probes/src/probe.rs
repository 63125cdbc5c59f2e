//! The definition of a probe: its description, its options, and the operation that it repeats.
//!
//! A probe measures one primitive of the operating system, such as fork. A row is a line of the
//! table of `equipoise os`: a probe with certain options.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use equipoise_reporting::problem::Problem;
use serde::Serialize;

/// One probe.
#[derive(Serialize)]
pub struct Probe {
    /// Name on the command line.
    pub name: &'static str,
    /// Table that the probe belongs to.
    pub class: Class,
    /// Description of one operation.
    pub summary: &'static str,
    pub metric: Metric,
    /// Permitted placements of the processes or threads on CPUs; the first is the default.
    pub placements: &'static [Placement],
    /// Permitted values of `--size`, in bytes; `None` if the probe has no such option.
    pub size: Option<Parameter>,
    /// Permitted values of `--count`; `None` if the probe has no such option.
    pub count: Option<Parameter>,
    /// Requirements on the machine; empty if every Linux meets them.
    pub needs: &'static str,
    /// Rows of the probe; their names begin with the name of the probe.
    #[serde(skip)]
    pub rows: &'static [Row],
    #[serde(skip)]
    pub open: Open,
}

/// Function that prepares the operation of a probe.
pub type Open = fn(&ProbeOptions) -> Result<OpenProbe, Problem>;

impl Probe {
    /// Returns a probe of latency. The caller fills in the name and the summary.
    pub const fn latency(class: Class, open: Open) -> Self {
        Self {
            name: "",
            class,
            summary: "",
            metric: Metric::Latency,
            placements: &[Placement::None],
            size: None,
            count: None,
            needs: "",
            rows: &[Row::PLAIN],
            open,
        }
    }

    /// Returns a probe of bandwidth. The caller fills in the name and the summary.
    pub const fn bandwidth(class: Class, open: Open) -> Self {
        let mut probe = Self::latency(class, open);
        probe.metric = Metric::Bandwidth;
        probe
    }

    /// Returns the probe with two sides (threads or processes), on one CPU or on two.
    pub const fn two_sided(mut self) -> Self {
        self.placements = &[Placement::SameCpu, Placement::AcrossCpus];
        self.rows = Row::TWO_SIDES;
        self
    }
}

/// Values of the options of a probe on the command line.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    pub placement: Placement,
    /// Value of `--size` in bytes; 0 for a probe without this option.
    pub size: u64,
    /// Value of `--count`; 0 for a probe without this option.
    pub count: u64,
    /// Value of `--folder`, for the files of the probe; `None` for the default.
    pub folder: Option<PathBuf>,
}

/// The class of a probe; `equipoise os` prints a table for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Process,
    /// Creating and ending threads, and waking one thread from another.
    Thread,
    SystemCalls,
    Signals,
    Ipc,
    /// Switching from one process to the next.
    ContextSwitch,
    /// Memory accesses, mappings and page faults.
    Memory,
    Files,
    Time,
}

/// The metric that a probe reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Metric {
    /// Seconds of one operation.
    #[serde(rename = "latency_s")]
    Latency,
    #[serde(rename = "bandwidth_bytes_per_s")]
    Bandwidth,
}

/// Placement of the processes or threads of a probe on CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// The kernel chooses the CPUs.
    None,
    SameCpu,
    AcrossCpus,
}

/// Formats the values of a type as their serde names.
macro_rules! display_serde_name {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(formatter)
            }
        }
    )*};
}

display_serde_name!(Class, Metric, Placement);

/// An option whose value is a whole number.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parameter {
    /// What the number means.
    pub summary: &'static str,
    pub default: u64,
    pub minimum: u64,
    pub maximum: u64,
}

/// A row of a probe: its options.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// End of the row's name, after the name of the probe.
    pub suffix: &'static str,
    /// Value of `--placement`; `None` for the default.
    pub placement: Option<Placement>,
    /// Value of `--size`; `None` for the default.
    pub size: Option<u64>,
    /// Value of `--count`; `None` for the default.
    pub count: Option<u64>,
}

impl Row {
    /// The row of a probe with its default options.
    pub const PLAIN: Self = Self::named("");

    /// The rows of a probe with two sides: one row for each placement.
    pub const TWO_SIDES: &[Self] = &[
        Self::named("_same_cpu").at(Placement::SameCpu),
        Self::named("_across_cpus").at(Placement::AcrossCpus),
    ];

    /// Returns a row with the default options; its name is the probe's name and a suffix.
    pub const fn named(suffix: &'static str) -> Self {
        Self {
            suffix,
            placement: None,
            size: None,
            count: None,
        }
    }

    pub const fn at(self, placement: Placement) -> Self {
        let placement = Some(placement);
        Self { placement, ..self }
    }

    pub const fn of_size(self, bytes: u64) -> Self {
        let size = Some(bytes);
        Self { size, ..self }
    }

    pub const fn of_count(self, count: u64) -> Self {
        let count = Some(count);
        Self { count, ..self }
    }
}

/// A probe that is ready to repeat its operation.
pub struct OpenProbe {
    /// The operation. Dropping it frees all resources of the probe.
    pub operation: Box<dyn Operation>,
    /// Bytes that one operation moves; 0 if the metric is not a bandwidth.
    pub bytes_per_operation: u64,
    /// Names and values of facts to report, such as the CPU.
    pub facts: Vec<(&'static str, String)>,
}

impl OpenProbe {
    /// Returns a probe whose operation is reported as `latency_s`.
    pub fn latency(operation: impl Operation + 'static) -> Self {
        Self::bandwidth(0, operation)
    }

    /// Returns a probe whose operation moves bytes and is reported as `bandwidth_bytes_per_s`.
    pub fn bandwidth(bytes_per_operation: u64, operation: impl Operation + 'static) -> Self {
        Self {
            operation: Box::new(operation),
            bytes_per_operation,
            facts: Vec::new(),
        }
    }

    pub fn with_fact(mut self, name: &'static str, value: String) -> Self {
        self.facts.push((name, value));
        self
    }
}

/// The operation of a probe, which a batch repeats.
pub trait Operation {
    /// Repeats the operation, checks every result, and returns the measured time.
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem>;
}

impl<Repeat: FnMut(u64) -> Result<Duration, Problem>> Operation for Repeat {
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem> {
        self(count)
    }
}

/// Repeats `work`, and returns the time of all repetitions. The loop itself takes less than a
/// nanosecond for each operation (docs/reference/primitives.md).
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

/// Splits `count` operations into rounds of at most `limit`, and yields the size of each round.
pub fn rounds(count: u64, limit: u64) -> impl Iterator<Item = u64> {
    (0..count.div_ceil(limit)).map(move |round| limit.min(count - round * limit))
}

#[cfg(test)]
mod tests {
    use super::rounds;

    #[test]
    fn operations_are_split_into_rounds_up_to_the_limit() {
        assert_eq!(rounds(67, 32).collect::<Vec<_>>(), [32, 32, 3]);
        assert_eq!(rounds(64, 32).collect::<Vec<_>>(), [32, 32]);
    }
}
