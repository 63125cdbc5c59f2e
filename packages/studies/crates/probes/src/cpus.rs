//! CPUs on which the two sides of a probe run.

use std::ffi::c_int;
use std::fs::read_to_string;

use equipoise_kernel::cpus::{self, Cpus, parse_list};
use equipoise_reporting::problem::Problem;

use crate::probe::Placement;
use crate::system::problem_of;

/// CPUs on which the two sides of a probe are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// CPU of the side that is timed; `None` leaves it to the kernel.
    pub measured: Option<usize>,
    /// CPU of the other side.
    pub other: Option<usize>,
}

/// Returns the CPUs of both sides. Across CPUs they are on two cores if possible, and unavailable
/// without a second CPU.
pub fn sides(placement: Placement) -> Result<Sides, Problem> {
    choose(placement, &allowed()?, core_siblings)
}

fn choose(
    placement: Placement,
    allowed: &[usize],
    core_siblings: impl FnOnce(usize) -> Vec<usize>,
) -> Result<Sides, Problem> {
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
    Ok(Sides { measured, other })
}

/// Holds the calling thread on one CPU, below 1024; `None` leaves it where it is.
pub fn hold(cpu: Option<usize>) -> Result<(), Problem> {
    let Some(cpu) = cpu else { return Ok(()) };
    let cpus =
        Cpus::from_numbers([cpu]).map_err(|error| Problem::unavailable(error.to_string()))?;
    cpus.apply().map_err(problem_of("sched_setaffinity"))
}

fn allowed() -> Result<Vec<usize>, Problem> {
    Cpus::allowed()
        .map(|cpus| cpus.numbers())
        .map_err(problem_of("sched_getaffinity"))
}

/// Returns the CPU that the calling thread runs on.
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

    fn none(_: usize) -> Vec<usize> {
        Vec::new()
    }

    #[test]
    fn the_two_sides_share_a_cpu_or_do_not() {
        for (placement, measured, other) in [
            (Placement::None, None, None),
            (Placement::SameCpu, Some(2), Some(2)),
            (Placement::AcrossCpus, Some(2), Some(5)),
        ] {
            let sides = choose(placement, &[2, 5, 7], none).expect("there are three");
            assert_eq!(sides, Sides { measured, other });
        }
    }

    #[test]
    fn without_a_second_cpu_the_sides_cannot_be_held_apart() {
        let problem = choose(Placement::AcrossCpus, &[3], none).expect_err("there is one");
        assert!(
            problem.is_unavailable() && problem.to_string().contains("[3]"),
            "{problem}"
        );
    }

    #[test]
    fn across_cpus_the_other_side_is_on_another_core_if_there_is_one() {
        for (allowed, other) in [(&[0, 1, 2, 3][..], 2), (&[0, 1], 1)] {
            let sides = choose(Placement::AcrossCpus, allowed, |_| vec![0, 1]);
            assert_eq!(sides.expect("there are two").other, Some(other));
        }
    }

    #[test]
    fn a_number_beyond_the_set_is_unavailable() {
        for cpu in [1024, usize::MAX] {
            let problem = hold(Some(cpu)).expect_err("it does not fit");
            assert!(problem.to_string().contains("CPUs 0 to 1023"), "{problem}");
        }
    }

    #[test]
    fn a_thread_is_held_on_the_cpu_that_is_named() {
        let before = allowed().expect("readable");
        std::thread::spawn(move || {
            hold(before.last().copied()).expect("permitted");
            assert_eq!(
                allowed().expect("readable").as_slice(),
                &before[before.len() - 1..]
            );
        })
        .join()
        .expect("held");
    }
}
