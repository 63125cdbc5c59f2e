//! Chooses the CPUs of the two sides of a probe: the timed side, and the other thread or process.

use std::ffi::c_int;
use std::fs::read_to_string;

use equipoise_kernel::cpus::{self, Cpus, parse_list};
use equipoise_reporting::problem::Problem;

use crate::probe::Placement;
use crate::system::problem_of;

/// CPUs of the two sides of a probe; for `None` the kernel chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideCpus {
    /// CPU of the side that is timed.
    pub measured: Option<usize>,
    pub other: Option<usize>,
}

/// Returns the CPUs of both sides. Two CPUs are on two cores if possible. It is an error if the
/// placement needs two CPUs and there is only one.
pub fn side_cpus(placement: Placement) -> Result<SideCpus, Problem> {
    choose_cpus(placement, &allowed_cpus()?, core_siblings)
}

fn choose_cpus(
    placement: Placement,
    allowed: &[usize],
    core_siblings: impl FnOnce(usize) -> Vec<usize>,
) -> Result<SideCpus, Problem> {
    let first = allowed.first().copied();
    let (measured, other) = match (placement, allowed) {
        (Placement::None, _) => (None, None),
        (Placement::SameCpu, _) => (first, first),
        (Placement::AcrossCpus, [measured, others @ ..]) if !others.is_empty() => {
            let siblings = core_siblings(*measured);
            let on_another_core = others.iter().find(|cpu| !siblings.contains(cpu));
            (first, on_another_core.or(others.first()).copied())
        }
        (Placement::AcrossCpus, _) => {
            return Err(Problem::unavailable(format!(
                "it needs two CPUs, and this process may use {allowed:?} only"
            )));
        }
    };
    Ok(SideCpus { measured, other })
}

/// Pins the calling thread to a CPU whose number is below 1024; `None` changes nothing.
pub fn pin_thread(cpu: Option<usize>) -> Result<(), Problem> {
    let Some(cpu) = cpu else { return Ok(()) };
    let cpus =
        Cpus::from_numbers([cpu]).map_err(|error| Problem::unavailable(error.to_string()))?;
    cpus.apply().map_err(problem_of("sched_setaffinity"))
}

fn allowed_cpus() -> Result<Vec<usize>, Problem> {
    Cpus::allowed()
        .map(|cpus| cpus.numbers())
        .map_err(problem_of("sched_getaffinity"))
}

pub fn current_cpu() -> Result<c_int, Problem> {
    cpus::current_cpu().map_err(problem_of("sched_getcpu"))
}

/// Returns the CPUs that share a core with a CPU; empty if the kernel does not report them.
fn core_siblings(cpu: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    read_to_string(file)
        .map(|list| parse_list(&list))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_siblings(_: usize) -> Vec<usize> {
        Vec::new()
    }

    #[test]
    fn each_placement_gives_the_two_sides_their_cpus() {
        for (placement, measured, other) in [
            (Placement::None, None, None),
            (Placement::SameCpu, Some(2), Some(2)),
            (Placement::AcrossCpus, Some(2), Some(5)),
        ] {
            let sides = choose_cpus(placement, &[2, 5, 7], no_siblings).expect("there are three");
            assert_eq!(sides, SideCpus { measured, other });
        }
    }

    #[test]
    fn a_placement_on_two_cpus_is_unavailable_with_one_cpu() {
        let problem =
            choose_cpus(Placement::AcrossCpus, &[3], no_siblings).expect_err("there is one");
        assert!(
            problem.is_unavailable() && problem.to_string().contains("[3]"),
            "{problem}"
        );
    }

    #[test]
    fn across_cpus_the_other_side_is_on_another_core_if_there_is_one() {
        for (allowed, other) in [(&[0, 1, 2, 3][..], 2), (&[0, 1], 1)] {
            let sides = choose_cpus(Placement::AcrossCpus, allowed, |_| vec![0, 1]);
            assert_eq!(sides.expect("there are two").other, Some(other));
        }
    }

    #[test]
    fn a_cpu_number_above_1023_is_unavailable() {
        for cpu in [1024, usize::MAX] {
            let problem = pin_thread(Some(cpu)).expect_err("it does not fit");
            assert!(problem.to_string().contains("CPUs 0 to 1023"), "{problem}");
        }
    }

    #[test]
    fn a_thread_is_pinned_to_a_cpu() {
        let before = allowed_cpus().expect("readable");
        std::thread::spawn(move || {
            pin_thread(before.last().copied()).expect("permitted");
            assert_eq!(
                allowed_cpus().expect("readable").as_slice(),
                &before[before.len() - 1..]
            );
        })
        .join()
        .expect("pinned");
    }
}
