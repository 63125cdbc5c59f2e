//! On which CPUs the two sides of a probe run.

use std::mem::{MaybeUninit, size_of};

use equipoise_reporting::problem::Problem;

use crate::probe::Placement;
use crate::system::accepted;

/// Where the two sides of a probe are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The side that is timed; `None` for wherever the kernel puts it.
    pub here: Option<usize>,
    /// The other side.
    pub there: Option<usize>,
}

/// The CPUs of both sides; unavailable where there is no second one.
///
/// # Errors
/// What the system says, or that the process may use one CPU only.
pub fn sides(placement: Placement) -> Result<Sides, Problem> {
    chosen(placement, &allowed()?)
}

fn chosen(placement: Placement, allowed: &[usize]) -> Result<Sides, Problem> {
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
        (Placement::AcrossCpus, [_, second, ..]) => Ok(Sides {
            here: first,
            there: Some(*second),
        }),
        (Placement::AcrossCpus, _) => Err(Problem::unavailable(format!(
            "it needs two CPUs, and this process may use {allowed:?} only"
        ))),
    }
}

/// Holds the calling thread on one CPU; `None` leaves it where it is.
///
/// # Errors
/// What `sched_setaffinity` says.
pub fn hold(cpu: Option<usize>) -> Result<(), Problem> {
    let Some(cpu) = cpu else { return Ok(()) };
    // SAFETY: all-zero is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: CPU_SET ignores a number that is beyond the set.
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
    let most = usize::try_from(libc::CPU_SETSIZE).unwrap_or_default();
    Ok((0..most)
        // SAFETY: the number is within the set.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_sides_share_a_cpu_or_do_not() {
        let held = |placement| chosen(placement, &[2, 5, 7]).expect("there are three");
        let on = |here, there| Sides { here, there };
        assert_eq!(held(Placement::None), on(None, None));
        assert_eq!(held(Placement::SameCpu), on(Some(2), Some(2)));
        assert_eq!(held(Placement::AcrossCpus), on(Some(2), Some(5)));
    }

    #[test]
    fn without_a_second_cpu_the_sides_cannot_be_held_apart() {
        let problem = chosen(Placement::AcrossCpus, &[3]).expect_err("there is one");
        assert!(
            problem.is_unavailable() && problem.to_string().contains("[3]"),
            "{problem}"
        );
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
