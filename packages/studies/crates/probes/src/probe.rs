//! The definition of a probe: its description, its options, and the operation that it repeats.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use equipoise_reporting::problem::Problem;
use serde::Serialize;

/// One probe: what it measures, which options it takes, and how it is opened.
#[derive(Serialize)]
pub struct Probe {
    /// Name on the command line.
    pub name: &'static str,
    /// Table that the probe belongs to.
    pub class: Class,
    /// Description of one operation.
    pub summary: &'static str,
    /// The metric that is reported.
    pub metric: Metric,
    /// Where its processes or threads may be held; the first is the default.
    pub placements: &'static [Placement],
    /// The `--size` that it takes, in bytes.
    pub size: Option<Parameter>,
    /// The `--count` that it takes.
    pub count: Option<Parameter>,
    /// Requirements on the machine; empty if every Linux meets them.
    pub needs: &'static str,
    /// Rows of `equipoise os` that it gives; the names follow on the probe's.
    #[serde(skip)]
    pub rows: &'static [Row],
    /// Makes the operation ready.
    #[serde(skip)]
    pub open: Open,
}

/// Makes the operation of a probe ready.
pub type Open = fn(&ProbeOptions) -> Result<OpenProbe, Problem>;

impl Probe {
    /// A probe of latency without a name, number, requirements or fixed CPUs.
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

    /// A probe of bandwidth without a name.
    pub const fn bandwidth(class: Class, open: Open) -> Self {
        let mut probe = Self::latency(class, open);
        probe.metric = Metric::Bandwidth;
        probe
    }

    /// The same probe with two sides, on one CPU or on two.
    pub const fn two_sided(mut self) -> Self {
        self.placements = &[Placement::SameCpu, Placement::AcrossCpus];
        self.rows = Row::TWO_SIDES;
        self
    }
}

/// Options with which a probe is opened.
#[derive(Clone, Debug)]
pub struct ProbeOptions {
    /// Where its processes or threads are held.
    pub placement: Placement,
    /// Bytes, or 0 for a probe without a size.
    pub size: u64,
    /// Number of things, or 0 for a probe without a count.
    pub count: u64,
    /// Folder for files, if the command line names one.
    pub folder: Option<PathBuf>,
}

/// The tables of `equipoise os`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Making and ending processes.
    Process,
    /// Making and ending threads, and handing over between them.
    Thread,
    /// System calls with almost no work.
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

/// The metric of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Metric {
    /// Seconds of one operation.
    #[serde(rename = "latency_s")]
    Latency,
    /// Bytes per second.
    #[serde(rename = "bandwidth_bytes_per_s")]
    Bandwidth,
}

/// Where the processes or threads of a probe are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Chosen by the kernel.
    None,
    /// All on one CPU.
    SameCpu,
    /// The two sides on two CPUs.
    AcrossCpus,
}

/// Shows a value by its name in the listing.
macro_rules! show_by_name {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(formatter)
            }
        }
    )*};
}

show_by_name!(Class, Metric, Placement);

/// A number that a probe takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parameter {
    /// The thing that the option counts.
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
    /// End of the row's name, after the name of the probe.
    pub suffix: &'static str,
    /// `--placement`, unless it is the default.
    pub placement: Option<Placement>,
    /// `--size`, unless it is the default.
    pub size: Option<u64>,
    /// `--count`, unless it is the default.
    pub count: Option<u64>,
}

impl Row {
    /// The row of a probe with its default options.
    pub const PLAIN: Self = Self::named("");

    /// The rows of a probe with two sides.
    pub const TWO_SIDES: &[Self] = &[
        Self::named("_same_cpu").at(Placement::SameCpu),
        Self::named("_across_cpus").at(Placement::AcrossCpus),
    ];

    /// A row with the default options, under the probe's name and a suffix.
    pub const fn named(suffix: &'static str) -> Self {
        Self {
            suffix,
            placement: None,
            size: None,
            count: None,
        }
    }

    /// The same row with its processes or threads held at a placement.
    pub const fn at(self, placement: Placement) -> Self {
        let placement = Some(placement);
        Self { placement, ..self }
    }

    /// The same row with another size.
    pub const fn of_size(self, bytes: u64) -> Self {
        let size = Some(bytes);
        Self { size, ..self }
    }

    /// The same row with another count.
    pub const fn of_count(self, count: u64) -> Self {
        let count = Some(count);
        Self { count, ..self }
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
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem>;
}

impl<Repeat: FnMut(u64) -> Result<Duration, Problem>> Operation for Repeat {
    fn repeat(&mut self, count: u64) -> Result<Duration, Problem> {
        self(count)
    }
}

/// Repeats some work, and returns the time of all repetitions.
///
/// The loop itself costs less than a nanosecond an operation (docs/reference/primitives.md).
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

/// Splits `count` operations into rounds of at most `limit`; yields the size of each.
pub fn rounds(count: u64, limit: u64) -> impl Iterator<Item = u64> {
    (0..count.div_ceil(limit)).map(move |round| limit.min(count - round * limit))
}

#[cfg(test)]
mod tests {
    use super::rounds;

    #[test]
    fn no_round_is_larger_than_the_limit_and_all_operations_are_in_one() {
        assert_eq!(rounds(67, 32).collect::<Vec<_>>(), [32, 32, 3]);
        assert_eq!(rounds(64, 32).collect::<Vec<_>>(), [32, 32]);
    }
}
