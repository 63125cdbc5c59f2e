//! Sets of CPUs, and the set of CPUs on which a thread may run.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::str::FromStr;

use crate::call::check;

/// Largest number of CPUs in a set.
pub const CAPACITY: usize = 8 * size_of::<libc::cpu_set_t>();

/// A set of CPUs.
#[derive(Clone, Copy)]
pub struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// Returns the CPUs that this thread may use.
    ///
    /// # Errors
    /// The error of `sched_getaffinity`, for instance on a machine with over 1024 CPUs.
    pub fn allowed() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: `set` is valid for writing the size that is given.
        check(unsafe {
            libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr())
        })?;
        // SAFETY: all-zero is a valid set, and the call filled it.
        Ok(Self(unsafe { set.assume_init() }))
    }

    /// Returns a set with the CPU on which this thread runs now.
    ///
    /// # Errors
    /// The error of `sched_getcpu`.
    pub fn current() -> io::Result<Self> {
        Self::from_numbers([usize::try_from(current_cpu()?).unwrap_or(usize::MAX)])
    }

    /// Returns the set of the CPUs with these numbers.
    ///
    /// # Errors
    /// A number is 1024 or higher, so the set cannot contain it.
    pub fn from_numbers(numbers: impl IntoIterator<Item = usize>) -> io::Result<Self> {
        // SAFETY: all-zero is a valid, empty set.
        let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
        for number in numbers {
            if number >= CAPACITY {
                let last = CAPACITY - 1;
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("CPU {number} is out of range: Equipoise supports CPUs 0 to {last}"),
                ));
            }
            // SAFETY: the set is initialised, and the number is below the number of its bits.
            unsafe { libc::CPU_SET(number, &mut set) };
        }
        Ok(Self(set))
    }

    /// Returns the numbers of the CPUs, in ascending order.
    #[must_use]
    pub fn numbers(&self) -> Vec<usize> {
        (0..CAPACITY)
            // SAFETY: the set is initialised, and the number is below the number of its bits.
            .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &self.0) })
            .collect()
    }

    /// Lets this thread run on these CPUs only.
    ///
    /// Safe to call between vfork and exec.
    ///
    /// # Errors
    /// The error of `sched_setaffinity`.
    pub fn apply(&self) -> io::Result<()> {
        // SAFETY: the set is valid for reading the size that is given.
        check(unsafe {
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.0)
        })
        .map(drop)
    }
}

/// Returns the CPU on which this thread runs now.
///
/// # Errors
/// The error of `sched_getcpu`.
pub fn current_cpu() -> io::Result<libc::c_int> {
    // SAFETY: takes no arguments and touches no memory of ours.
    check(unsafe { libc::sched_getcpu() })
}

/// Parses a list of numbers as the kernel writes it, such as `0-3,8`.
#[must_use]
pub fn parse_list<Number>(list: &str) -> Vec<Number>
where
    Number: FromStr,
    std::ops::RangeInclusive<Number>: Iterator<Item = Number>,
{
    list.trim()
        .split(',')
        .filter_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            Some(low.parse().ok()?..=high.parse().ok()?)
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_number_that_is_too_large_is_an_error_with_the_range() {
        let last = Cpus::from_numbers([0, 1023]).expect("both fit");
        assert_eq!(last.numbers(), [0, 1023]);
        for number in [1024, usize::MAX] {
            let error = Cpus::from_numbers([0, number])
                .err()
                .expect("it does not fit");
            assert!(error.to_string().contains("CPUs 0 to 1023"), "{error}");
        }
    }

    #[test]
    fn a_thread_is_restricted_to_one_cpu_and_released() {
        let allowed = Cpus::allowed().expect("readable");
        let last = allowed.numbers().pop().expect("one at least");
        let one_cpu = Cpus::from_numbers([last]).expect("in range");
        one_cpu.apply().expect("permitted");
        assert_eq!(Cpus::allowed().expect("readable").numbers(), [last]);
        assert_eq!(Cpus::current().expect("known").numbers(), [last]);
        allowed.apply().expect("permitted");
        let after = Cpus::allowed().expect("readable").numbers();
        assert_eq!(after, allowed.numbers());
    }

    #[test]
    fn number_lists_of_the_kernel_are_parsed() {
        assert_eq!(parse_list::<usize>("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(parse_list::<i32>("0"), [0]);
        assert_eq!(parse_list::<usize>("\n"), [0_usize; 0]);
    }
}
