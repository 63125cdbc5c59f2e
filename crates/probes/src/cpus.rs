//! On which CPUs the two sides of a probe run.

use std::fs::read_to_string;
use std::mem::{MaybeUninit, size_of};

use equipoise_reporting::problem::Problem;

use crate::probe::Placement;
use crate::system::accepted;

/// Number of CPUs that `cpu_set_t` has a bit for.
const CPUS_OF_A_SET: usize = 8 * size_of::<libc::cpu_set_t>();

/// Where the two sides of a probe are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The side that is timed; `None` for wherever the kernel puts it.
    pub here: Option<usize>,
    /// The other side.
    pub there: Option<usize>,
}

/// The CPUs of both sides; unavailable where there is no second one. Across CPUs they are on two
/// cores if they can be.
///
/// # Errors
/// What the system says, or that the process may use one CPU only.
pub fn sides(placement: Placement) -> Result<Sides, Problem> {
    chosen(placement, &allowed()?, on_its_core)
}

fn chosen(
    placement: Placement,
    allowed: &[usize],
    on_its_core: impl FnOnce(usize) -> Vec<usize>,
) -> Result<Sides, Problem> {
    let first = allowed.first().copied();
    match (placement, allowed) {
        (Placement::None, _) => Ok(Sides {
            here: None,
            there: None,
        }),
        (Placement::SameCpu, _) => Ok(Sides {
            here: first,
            there: first,
        }),
        (Placement::AcrossCpus, [here, others @ ..]) if !others.is_empty() => {
            let sharing = on_its_core(*here);
            let apart = others.iter().find(|cpu| !sharing.contains(cpu));
            Ok(Sides {
                here: first,
                there: apart.or(others.first()).copied(),
            })
        }
        (Placement::AcrossCpus, _) => Err(Problem::unavailable(format!(
            "it needs two CPUs, and this process may use {allowed:?} only"
        ))),
    }
}

/// Holds the calling thread on one CPU; `None` leaves it where it is.
///
/// # Errors
/// What `sched_setaffinity` says, or that the number is 1024 or higher.
pub fn hold(cpu: Option<usize>) -> Result<(), Problem> {
    let Some(cpu) = cpu else { return Ok(()) };
    if cpu >= CPUS_OF_A_SET {
        return Err(Problem::unavailable(format!(
            "CPU {cpu} is out of range: Equipoise supports CPUs 0 to {}",
            CPUS_OF_A_SET - 1
        )));
    }
    // SAFETY: all-zero is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the set is initialised. The number is below the number of its bits: CPU_SET indexes
    // an array with it, and panics beyond the end.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is valid for reading the size that is given.
    let result =
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    accepted("sched_setaffinity", result).map(drop)
}

fn allowed() -> Result<Vec<usize>, Problem> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set is valid for writing the size that is given.
    let result =
        unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
    accepted("sched_getaffinity", result)?;
    // SAFETY: all-zero is a valid set, and the call filled it.
    let set = unsafe { set.assume_init() };
    Ok((0..CPUS_OF_A_SET)
        // SAFETY: the set is initialised, and the number is below the number of its bits.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect())
}

/// The CPUs that share a core with this one; none where the kernel does not say.
fn on_its_core(cpu: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    read_to_string(file)
        .map(|list| numbers(&list))
        .unwrap_or_default()
}

/// The numbers of a list as the kernel writes it: `0-3,8`.
fn numbers(list: &str) -> Vec<usize> {
    list.trim()
        .split(',')
        .filter_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some(from.parse().ok()?..=to.parse().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: usize) -> Vec<usize> {
        Vec::new()
    }

    #[test]
    fn the_two_sides_share_a_cpu_or_do_not() {
        let held = |placement| chosen(placement, &[2, 5, 7], none).expect("there are three");
        let on = |here, there| Sides { here, there };
        assert_eq!(held(Placement::None), on(None, None));
        assert_eq!(held(Placement::SameCpu), on(Some(2), Some(2)));
        assert_eq!(held(Placement::AcrossCpus), on(Some(2), Some(5)));
    }

    #[test]
    fn without_a_second_cpu_the_sides_cannot_be_held_apart() {
        let problem = chosen(Placement::AcrossCpus, &[3], none).expect_err("there is one");
        assert!(
            problem.is_unavailable() && problem.to_string().contains("[3]"),
            "{problem}"
        );
    }

    #[test]
    fn across_cpus_the_other_side_is_on_another_core_if_there_is_one() {
        for (allowed, there) in [(&[0, 1, 2, 3][..], 2), (&[0, 1], 1)] {
            let sides = chosen(Placement::AcrossCpus, allowed, |_| vec![0, 1]);
            assert_eq!(sides.expect("there are two").there, Some(there));
        }
    }

    #[test]
    fn the_kernels_lists_of_cpus_are_read() {
        assert_eq!(numbers("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(numbers("\n"), [0_usize; 0]);
    }

    #[test]
    fn a_number_beyond_the_set_is_an_error_in_words() {
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
