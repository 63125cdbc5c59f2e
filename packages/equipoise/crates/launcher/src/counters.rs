//! Reads performance counters (cycles, page faults and more), and reports a trial's increase.

use std::fs;
use std::io;
use std::path::Path;

use equipoise_kernel::perf::{HARDWARE, SOFTWARE, is_forbidden};

use crate::perf::{Config, Count, Event, Modes};
use crate::protocol::Report;

/// Events that a counter still counts if it may not count inside the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithoutKernel {
    /// All events, because the counter is a clock.
    All,
    /// The events in user mode.
    User,
    /// No events, because they occur in the kernel only.
    Nothing,
}

/// A kind of counter, such as `cycles`.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    config: Config,
    without_kernel: WithoutKernel,
}

const fn kind(name: &'static str, class: u32, event: u64, without_kernel: WithoutKernel) -> Kind {
    Kind {
        name,
        config: Config { class, event },
        without_kernel,
    }
}

/// Every kind of counter; docs/evidence/counters.md explains them. The numbers are
/// `PERF_COUNT_SW_*` and `PERF_COUNT_HW_*` of `linux/perf_event.h`.
pub static KINDS: [Kind; 10] = [
    kind("task_clock", SOFTWARE, 1, WithoutKernel::All),
    kind("page_faults", SOFTWARE, 2, WithoutKernel::User),
    kind("context_switches", SOFTWARE, 3, WithoutKernel::Nothing),
    kind("cpu_migrations", SOFTWARE, 4, WithoutKernel::Nothing),
    kind("cycles", HARDWARE, 0, WithoutKernel::User),
    kind("instructions", HARDWARE, 1, WithoutKernel::User),
    kind("cache_references", HARDWARE, 2, WithoutKernel::User),
    kind("cache_misses", HARDWARE, 3, WithoutKernel::User),
    kind("branches", HARDWARE, 4, WithoutKernel::User),
    kind("branch_misses", HARDWARE, 5, WithoutKernel::User),
];

/// Name of the counter that is a clock. It counts nanoseconds and is reported in seconds.
const CLOCK: &str = "task_clock";

/// Returns the kind of counter with a name; the error names all kinds.
pub fn find(name: &str) -> Result<&'static Kind, String> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let names = names.join(", ");
        format!("no counter is called {name}; there are {names}")
    })
}

/// The counters that the client requested.
pub struct Counters(Vec<Counter>);

struct Counter {
    kind: &'static Kind,
    /// One event, or one event for each kind of core; or the reason why there is none.
    events: Result<Vec<Event>, String>,
    /// Remark that the values leave out the events inside the kernel.
    remark: Option<String>,
}

/// The counts of all counters at one moment.
pub struct Reading(Vec<Option<io::Result<Count>>>);

impl Counters {
    /// Opens the counters. If a counter cannot be opened, its reports have the reason.
    pub fn open(kinds: &[&'static Kind]) -> Self {
        Self(kinds.iter().map(|kind| Counter::open(kind)).collect())
    }

    /// Reads the counters: just before a trial starts, and just after its end was seen.
    pub fn read(&self) -> Reading {
        Reading(self.0.iter().map(Counter::read).collect())
    }

    /// Reports the increase during a trial. The report must already have the processor time.
    pub fn report_increase(&self, before: Reading, after: Reading, report: &mut Report) {
        let user_and_sys = report.user_s.zip(report.sys_s);
        let cpu_s = user_and_sys.map(|(user, sys)| user + sys);
        let readings = before.0.into_iter().zip(after.0);
        for (counter, (before, after)) in self.0.iter().zip(readings) {
            let name = counter.kind.name;
            match counter.increase(before, after, cpu_s) {
                Ok((value, remark)) => {
                    report.counters.insert(name, Some(value));
                    report.unknown.extend(remark.map(|remark| (name, remark)));
                }
                Err(reason) => {
                    report.counters.insert(name, None);
                    report.unknown.insert(name, reason);
                }
            }
        }
    }

    pub fn report_unknown(&self, reason: &str, report: &mut Report) {
        for counter in &self.0 {
            report.counters.insert(counter.kind.name, None);
            report.unknown.insert(counter.kind.name, reason.to_owned());
        }
    }
}

impl Counter {
    fn open(kind: &'static Kind) -> Self {
        let opened = open_on_every_core(kind, Modes::All);
        let (events, remark) = match opened {
            Err(error) if is_forbidden(&error) && kind.without_kernel != WithoutKernel::Nothing => {
                let remark = (kind.without_kernel == WithoutKernel::User).then(|| {
                    let reason = forbidden_reason(paranoid_level(), MAX_LEVEL_WITH_KERNEL);
                    format!("counted outside the kernel only: counting inside it is {reason}")
                });
                (open_on_every_core(kind, Modes::User), remark)
            }
            result => (result, None),
        };
        Self {
            kind,
            events: events.map_err(|error| open_failure(kind, &error, paranoid_level())),
            remark,
        }
    }

    /// Reads the sum over all kinds of core; `None` if the counter could not be opened.
    fn read(&self) -> Option<io::Result<Count>> {
        let events = self.events.as_ref().ok()?;
        Some(events.iter().try_fold(Count::default(), |sum, event| {
            event.read().map(|count| sum.add_other_cores(count))
        }))
    }

    /// Returns the increase with a remark on what it leaves out, or the reason why it is unknown.
    fn increase(
        &self,
        before: Option<io::Result<Count>>,
        after: Option<io::Result<Count>>,
        cpu_s: Option<f64>,
    ) -> Result<(f64, Option<String>), String> {
        let (Some(before), Some(after)) = (before, after) else {
            return Err(match &self.events {
                Err(reason) => reason.clone(),
                Ok(_) => "it was not read".to_owned(),
            });
        };
        let unreadable = |error| format!("it could not be read: {error}");
        let before = before.map_err(unreadable)?;
        let count = after.map_err(unreadable)?.since(before);
        let (value, fraction) = scale_up(count, cpu_s)?;
        let scaling = fraction.map(|fraction| {
            let percent = 100.0 * fraction;
            format!(
                "scaled up: it took turns with other counters and was counted {percent:.0} % of \
                 the time; request fewer counters"
            )
        });
        let remarks: Vec<String> = scaling.into_iter().chain(self.remark.clone()).collect();
        let remark = (!remarks.is_empty()).then(|| remarks.join("; "));
        let unit_factor = if self.kind.name == CLOCK { 1e-9 } else { 1.0 };
        Ok((value * unit_factor, remark))
    }
}

/// Returns the count, scaled up to the whole time, and the counted fraction of the time; `None` if
/// the whole time was counted. The error is the reason why the count is unknown.
fn scale_up(count: Count, cpu_s: Option<f64>) -> Result<(f64, Option<f64>), String> {
    /// Seconds that may be missing: starts and ends of processes are not counted.
    const MAX_MISSING_S: f64 = 0.01;
    let enabled_s = count.enabled_ns as f64 * 1e-9;
    if let Some(cpu_s) = cpu_s {
        let missing_s = cpu_s - enabled_s;
        if missing_s > MAX_MISSING_S && missing_s > cpu_s / 2.0 {
            return Err(format!(
                "only {enabled_s:.3} s of its {cpu_s:.3} s on a processor were counted: the \
                 kernel counts neither a program that gains rights (set-user-ID) nor the end of \
                 a process, which gives its memory back"
            ));
        }
    }
    if count.running_ns == 0 {
        return Err("other counters had every turn; request fewer counters".to_owned());
    }
    let value = count.value as f64;
    if count.running_ns >= count.enabled_ns {
        return Ok((value, None));
    }
    let fraction = count.running_ns as f64 / count.enabled_ns as f64;
    Ok((value / fraction, Some(fraction)))
}

fn open_on_every_core(kind: &Kind, modes: Modes) -> io::Result<Vec<Event>> {
    /// Bits of an event below the number of the kind of core.
    const CORE_SHIFT: u32 = 32;
    let core_types = match kind.config.class {
        HARDWARE => core_types(Path::new("/sys/bus/event_source/devices")),
        _ => Vec::new(),
    };
    if core_types.len() < 2 {
        return Ok(vec![Event::open(kind.config, modes)?]);
    }
    let configs = core_types.into_iter().map(|core_type| Config {
        event: kind.config.event | u64::from(core_type) << CORE_SHIFT,
        ..kind.config
    });
    configs.map(|config| Event::open(config, modes)).collect()
}

/// Returns the numbers of the processor's counting units. Each kind of core has its own unit (Linux
/// 5.13, admin-guide/perf, "Intel hybrid support").
fn core_types(devices: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(devices) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|device| device.path().join("cpus").exists())
        .filter_map(|device| fs::read_to_string(device.path().join("type")).ok())
        .filter_map(|number| number.trim().parse().ok())
        .collect()
}

/// Highest `kernel.perf_event_paranoid` at which users may count inside the kernel.
const MAX_LEVEL_WITH_KERNEL: i32 = 1;
/// Highest `kernel.perf_event_paranoid` at which users may count outside the kernel.
const MAX_LEVEL_WITHOUT_KERNEL: i32 = 2;

fn paranoid_level() -> Option<i32> {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    level.trim().parse().ok()
}

fn open_failure(kind: &Kind, error: &io::Error, level: Option<i32>) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => match kind.without_kernel {
            WithoutKernel::Nothing => forbidden_reason(level, MAX_LEVEL_WITH_KERNEL),
            _ => forbidden_reason(level, MAX_LEVEL_WITHOUT_KERNEL),
        },
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) if kind.config.class == HARDWARE => {
            "this machine does not have it: use real hardware, or a virtual machine with access \
             to the processor's counters"
                .to_owned()
        }
        Some(libc::ENOSYS) => {
            "the kernel has no performance counters: use a kernel with CONFIG_PERF_EVENTS"
                .to_owned()
        }
        _ => format!("it could not be opened: {error}"),
    }
}

fn forbidden_reason(level: Option<i32>, max_level: i32) -> String {
    match level {
        Some(level) if level > max_level => format!(
            "forbidden, because kernel.perf_event_paranoid is {level}; `sudo sysctl \
             kernel.perf_event_paranoid={max_level}` permits it"
        ),
        _ => "forbidden by something other than kernel.perf_event_paranoid: permit \
              perf_event_open in the container's seccomp profile or the security module"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(errno: i32) -> io::Error {
        io::Error::from_raw_os_error(errno)
    }

    fn count(value: u64, enabled_ns: u64, running_ns: u64) -> Count {
        Count {
            value,
            enabled_ns,
            running_ns,
        }
    }

    #[test]
    fn the_reason_of_a_forbidden_counter_names_the_level_and_the_hint() {
        for (name, errno, level, parts) in [
            ("context_switches", libc::EACCES, 2, ["is 2", "paranoid=1"]),
            ("cycles", libc::EACCES, 3, ["is 3", "paranoid=2"]),
            ("cycles", libc::EPERM, -1, ["seccomp", "forbidden"]),
        ] {
            let kind = find(name).expect("known");
            let reason = open_failure(kind, &error(errno), Some(level));
            assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
        }
    }

    #[test]
    fn a_counter_that_does_not_exist_is_distinguished_from_a_failure() {
        let cycles = find("cycles").expect("known");
        for errno in [libc::ENOENT, libc::ENODEV, libc::EOPNOTSUPP] {
            let reason = open_failure(cycles, &error(errno), Some(2));
            assert!(reason.contains("virtual machine"), "{reason}");
        }
        assert!(open_failure(cycles, &error(libc::ENOSYS), None).contains("CONFIG_PERF_EVENTS"));
        assert!(
            open_failure(cycles, &error(libc::EMFILE), Some(2)).contains("Too many open files")
        );
    }

    #[test]
    fn a_count_of_a_part_of_the_time_is_scaled_up() {
        assert_eq!(scale_up(count(30, 400, 100), None), Ok((120.0, Some(0.25))));
        assert_eq!(scale_up(count(30, 400, 400), None), Ok((30.0, None)));
    }

    #[test]
    fn a_count_of_no_time_is_unknown_and_not_zero() {
        assert!(scale_up(count(0, 400, 0), None).is_err_and(|reason| reason.contains("turn")));
    }

    #[test]
    fn a_count_that_stopped_early_is_unknown() {
        let second = 1_000_000_000;
        let early = scale_up(count(7, second, second), Some(3.0));
        assert!(early.is_err_and(|reason| reason.contains("set-user-ID")));
        let short = count(7, 1_000_000, 1_000_000);
        assert_eq!(scale_up(short, Some(0.003)), Ok((7.0, None)));
    }

    #[test]
    fn only_counting_units_of_certain_cpus_are_kinds_of_core() {
        let folder = std::env::temp_dir().join(format!("equipoise-cores-{}", std::process::id()));
        for (name, number, cpus) in [("big", 8, true), ("little", 10, true), ("power", 5, false)] {
            let device = folder.join(name);
            fs::create_dir_all(&device).expect("made");
            fs::write(device.join("type"), format!("{number}\n")).expect("written");
            if cpus {
                fs::write(device.join("cpus"), "0-3\n").expect("written");
            }
        }
        let mut cores = core_types(&folder);
        cores.sort_unstable();
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(cores, [8, 10]);
        assert!(core_types(&folder).is_empty());
    }
}
