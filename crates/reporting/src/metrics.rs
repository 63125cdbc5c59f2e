//! Reports the metrics of a built-in program, as any other program can.
//!
//! `EQUIPOISE_METRICS` names a file to which JSON lines are appended. Without the variable, as when
//! a user runs a workload by hand, the lines go to standard output. Facts that are not numbers
//! always go to standard output, as one JSON object.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use equipoise_kernel::clock::monotonic_resolution_s;

use crate::problem::Problem;

/// Environment variable that names the file for the metrics.
const METRICS_VARIABLE: &str = "EQUIPOISE_METRICS";

/// The metrics of a trial, which is one run of the program, and facts about the trial.
#[derive(Debug, Default)]
pub struct Report {
    metrics: Vec<Metric>,
    facts: Vec<(&'static str, String)>,
}

/// Whether small or large values of a metric are better.
#[derive(Clone, Copy, Debug)]
pub enum Better {
    /// Smaller values are better.
    Lower,
    /// Larger values are better.
    Higher,
}

#[derive(Debug)]
struct Metric {
    name: &'static str,
    value: f64,
    unit: &'static str,
    better: Better,
    /// Number of the iteration, from 1; `None` for the trial as a whole.
    iteration: Option<usize>,
    /// Smallest step of the value, in its unit; `None` if no clock measured the value.
    resolution: Option<f64>,
}

impl Metric {
    /// Returns the JSON line. Names and units are plain words, so they need no escaping.
    fn line(&self) -> String {
        let iteration = self
            .iteration
            .map_or(String::new(), |number| format!("\"iteration\": {number}, "));
        let better = match self.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        };
        // The resolution is a fraction of the value. If the value is 0, it is 0 and says nothing.
        let resolution = self
            .resolution
            .filter(|resolution| resolution.is_finite() && *resolution > 0.0)
            .map_or(String::new(), |resolution| {
                format!(", \"resolution\": {resolution:?}")
            });
        format!(
            "{{\"metric\": \"{}\", \"value\": {:?}, {iteration}\"unit\": \"{}\", \"better\": \"{better}\"{resolution}}}\n",
            self.name, self.value, self.unit
        )
    }
}

impl Report {
    /// Adds a metric of the trial whose smaller values are better.
    #[must_use]
    pub fn cost(self, name: &'static str, value: f64, unit: &'static str) -> Self {
        self.with_metric(name, value, unit, Better::Lower, None, None)
    }

    /// Adds a metric of the trial whose larger values are better.
    #[must_use]
    pub fn gain(self, name: &'static str, value: f64, unit: &'static str) -> Self {
        self.with_metric(name, value, unit, Better::Higher, None, None)
    }

    /// Adds a metric of the trial that is proportional to `elapsed`, or to 1 / `elapsed`. So the
    /// resolution of the clock gives its resolution.
    #[must_use]
    pub fn timed(
        self,
        name: &'static str,
        value: f64,
        unit: &'static str,
        better: Better,
        elapsed: Duration,
    ) -> Self {
        let resolution = value * monotonic_resolution_s() / elapsed.as_secs_f64();
        self.with_metric(name, value, unit, better, None, Some(resolution))
    }

    /// Adds a time of the trial, in seconds.
    #[must_use]
    pub fn time(self, name: &'static str, elapsed: Duration) -> Self {
        self.timed(name, elapsed.as_secs_f64(), "s", Better::Lower, elapsed)
    }

    /// Adds the metric of every workload, `work_s`: the seconds for one unit of work. `elapsed` is
    /// the time for all units.
    #[must_use]
    pub fn work(self, seconds: f64, elapsed: Duration) -> Self {
        self.timed("work_s", seconds, "s", Better::Lower, elapsed)
    }

    /// Adds the times of repetitions as iterations. Their mean becomes two metrics of the trial:
    /// `name` and `work_s`.
    #[must_use]
    pub fn times(self, name: &'static str, times: &[Duration]) -> Self {
        let total: Duration = times.iter().sum();
        let mean = total.as_secs_f64() / times.len() as f64;
        let tick_s = monotonic_resolution_s();
        let report = self.timed(name, mean, "s", Better::Lower, total);
        times
            .iter()
            .enumerate()
            .fold(report, |report, (index, time)| {
                let (seconds, iteration) = (time.as_secs_f64(), Some(index + 1));
                report.with_metric(name, seconds, "s", Better::Lower, iteration, Some(tick_s))
            })
            .work(mean, total)
    }

    /// Adds the values of batches of operations as iterations, and their median as a metric of the
    /// trial. Without values, it adds nothing. `resolution_of` returns the resolution of a value.
    #[must_use]
    pub fn batches(
        self,
        name: &'static str,
        values: &[f64],
        unit: &'static str,
        better: Better,
        resolution_of: impl Fn(f64) -> f64,
    ) -> Self {
        let Some(median) = median(values) else {
            return self;
        };
        let resolution = resolution_of(median);
        values.iter().enumerate().fold(
            self.with_metric(name, median, unit, better, None, Some(resolution)),
            |report, (index, &value)| {
                let (iteration, resolution) = (Some(index + 1), Some(resolution_of(value)));
                report.with_metric(name, value, unit, better, iteration, resolution)
            },
        )
    }

    /// Adds a number of bytes; adds nothing if the number is unknown (`None`).
    #[must_use]
    pub fn bytes(self, name: &'static str, bytes: Option<u64>) -> Self {
        match bytes {
            Some(bytes) => self.cost(name, bytes as f64, "B"),
            None => self,
        }
    }

    /// Adds a fact that is not a metric.
    #[must_use]
    pub fn fact(mut self, name: &'static str, value: String) -> Self {
        self.facts.push((name, value));
        self
    }

    fn with_metric(
        mut self,
        name: &'static str,
        value: f64,
        unit: &'static str,
        better: Better,
        iteration: Option<usize>,
        resolution: Option<f64>,
    ) -> Self {
        self.metrics.push(Metric {
            name,
            value,
            unit,
            better,
            iteration,
            resolution,
        });
        self
    }

    /// Publishes the metrics, and returns the text for standard output.
    ///
    /// # Errors
    /// The file that `EQUIPOISE_METRICS` names cannot be appended to.
    pub fn publish(&self) -> Result<String, Problem> {
        let facts = self.fact_line();
        match std::env::var_os(METRICS_VARIABLE) {
            None => Ok(facts + &self.metric_lines()),
            Some(file) => append(&file, &self.metric_lines()).map(|()| facts),
        }
    }

    fn metric_lines(&self) -> String {
        self.metrics.iter().map(Metric::line).collect()
    }

    fn fact_line(&self) -> String {
        if self.facts.is_empty() {
            return String::new();
        }
        let pairs: Vec<String> = self
            .facts
            .iter()
            .map(|(name, value)| format!("\"{name}\": \"{}\"", escaped(value)))
            .collect();
        format!("{{{}}}\n", pairs.join(", "))
    }
}

/// Returns the median; `None` without values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = sorted.len() / 2;
    let lower = upper.checked_sub(usize::from(sorted.len().is_multiple_of(2)))?;
    Some(f64::midpoint(*sorted.get(lower)?, *sorted.get(upper)?))
}

/// Escapes a text for a JSON string, without the quotation marks (RFC 8259, section 7).
///
/// # Panics
/// Never: writing to a string cannot fail.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => escaped.extend(['\\', character]),
            control if control < ' ' => {
                write!(escaped, "\\u{:04x}", u32::from(control)).expect("a string can be written");
            }
            other => escaped.push(other),
        }
    }
    escaped
}

fn append(file: &OsString, lines: &str) -> Result<(), Problem> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .and_then(|mut opened| opened.write_all(lines.as_bytes()))
        .map_err(|error| {
            Problem::failure(format!(
                "cannot append to {}, which {METRICS_VARIABLE} names: {error}",
                file.to_string_lossy()
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::{Better, Report, monotonic_resolution_s};
    use std::time::Duration;

    #[test]
    fn repetitions_are_reported_as_iterations_with_their_mean() {
        let report =
            Report::default().times("call_s", &[Duration::from_secs(1), Duration::from_secs(3)]);
        let lines = report.metric_lines();
        let (mean, iterations) = lines.split_once('\n').unwrap();
        assert!(mean.contains("\"value\": 2.0,") && !mean.contains("iteration"));
        for (line, part) in iterations
            .lines()
            .zip(["1.0, \"iteration\": 1", "3.0, \"iteration\": 2"])
        {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn batches_are_reported_as_iterations_with_their_median() {
        for (values, median) in [
            (vec![4.0, 1.0, 9.0], "\"value\": 4.0,"),
            (vec![4.0, 1.0, 9.0, 2.0], "\"value\": 3.0,"),
        ] {
            let report =
                Report::default().batches("latency_s", &values, "s", Better::Lower, |_| 1e-12);
            let lines = report.metric_lines();
            let (first, iterations) = lines.split_once('\n').unwrap();
            assert!(
                first.contains(median) && !first.contains("iteration"),
                "{first}"
            );
            assert_eq!(iterations.lines().count(), values.len());
            assert!(iterations.contains("\"value\": 1.0, \"iteration\": 2,"));
        }
    }

    #[test]
    fn a_time_reports_the_step_of_the_clock_in_the_unit_of_the_metric() {
        let tick_s = monotonic_resolution_s();
        let elapsed = Duration::from_secs(2);
        let report = Report::default()
            .time("call_s", elapsed)
            .timed("ns_per_call", 4e9, "ns", Better::Lower, elapsed)
            .timed("calls_per_s", 0.5, "1/s", Better::Higher, elapsed)
            .cost("calls", 1.0, "1")
            .time("nothing_s", Duration::ZERO);
        let steps: Vec<_> = report
            .metrics
            .iter()
            .map(|metric| metric.resolution)
            .collect();
        let near = |step: Option<f64>, expected: f64| (step.unwrap() / expected - 1.0).abs() < 1e-9;
        assert!(near(steps[0], tick_s));
        assert!(near(steps[1], 2e9 * tick_s));
        assert!(near(steps[2], 0.25 * tick_s));
        let has_resolution: Vec<_> = report
            .metric_lines()
            .lines()
            .map(|line| line.contains("\"resolution\": "))
            .collect();
        assert_eq!(has_resolution, [true, true, true, false, false]);
    }

    #[test]
    fn no_metric_is_reported_without_batches() {
        let report = Report::default().batches("latency_s", &[], "s", Better::Lower, |_| 1e-12);
        assert_eq!(report.metric_lines(), "");
    }

    #[test]
    fn unknown_bytes_are_not_reported() {
        let report = Report::default()
            .bytes("peak_bytes", None)
            .bytes("live_bytes", Some(7));
        assert_eq!(report.metric_lines().lines().count(), 1);
    }

    #[test]
    fn the_value_of_a_fact_is_escaped_for_json() {
        let report = Report::default().fact("library", "/a \"b\"\\\n".to_owned());
        assert_eq!(
            report.fact_line(),
            "{\"library\": \"/a \\\"b\\\"\\\\\\u000a\"}\n"
        );
    }
}
