//! On which CPUs the launcher and its children may run.

use std::io;
use std::mem::{MaybeUninit, size_of};

/// The CPUs that the launcher may use, which every child gets back before it executes.
#[derive(Clone, Copy)]
pub struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// The CPUs that this process may use now.
    ///
    /// # Errors
    /// What `sched_getaffinity` says, for instance for a machine with over 1024 CPUs.
    pub fn allowed() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: `set` is valid for writing the size that is given.
        let status =
            unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
        if status != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: all-zero is a valid set, and the call filled it.
        Ok(Self(unsafe { set.assume_init() }))
    }

    /// The CPU on which this code runs now, alone.
    ///
    /// # Errors
    /// What `sched_getcpu` says.
    pub fn here() -> io::Result<Self> {
        // SAFETY: takes nothing and touches no memory of ours.
        let cpu = usize::try_from(unsafe { libc::sched_getcpu() })
            .map_err(|_| io::Error::last_os_error())?;
        let mut here = Self::none();
        here.add(cpu)?;
        Ok(here)
    }

    /// The CPUs with these numbers.
    ///
    /// # Errors
    /// A number is 1024 or higher: `cpu_set_t` has no bit for it.
    pub fn of(numbers: &[u32]) -> io::Result<Self> {
        let mut cpus = Self::none();
        for &number in numbers {
            cpus.add(usize::try_from(number).unwrap_or(usize::MAX))?;
        }
        Ok(cpus)
    }

    fn none() -> Self {
        // SAFETY: all-zero is a valid, empty set.
        Self(unsafe { MaybeUninit::zeroed().assume_init() })
    }

    fn add(&mut self, number: usize) -> io::Result<()> {
        if number >= 8 * size_of::<libc::cpu_set_t>() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("CPU {number} is out of range: Equipoise supports CPUs 0 to 1023"),
            ));
        }
        // SAFETY: the set is initialised. The number is below the number of its bits: CPU_SET
        // indexes an array with it, and panics beyond the end.
        unsafe { libc::CPU_SET(number, &mut self.0) };
        Ok(())
    }

    /// Lets this process run on these CPUs only.
    ///
    /// Safe to call between vfork and exec.
    ///
    /// # Errors
    /// What `sched_setaffinity` says.
    pub fn apply(&self) -> io::Result<()> {
        // SAFETY: the set is valid for reading the size that is given.
        let status =
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.0) };
        if status == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(cpus: &Cpus) -> i32 {
        // SAFETY: the set is initialised.
        unsafe { libc::CPU_COUNT(&cpus.0) }
    }

    #[test]
    fn a_number_beyond_the_set_is_an_error_in_words() {
        let last = Cpus::of(&[0, 1023]).expect("both fit");
        assert_eq!(count(&last), 2);
        for number in [1024, u32::MAX] {
            let error = Cpus::of(&[0, number]).err().expect("it does not fit");
            assert!(error.to_string().contains("CPUs 0 to 1023"), "{error}");
        }
    }

    #[test]
    fn a_thread_can_be_held_on_one_cpu_and_let_go() {
        let allowed = Cpus::allowed().expect("readable");
        Cpus::here().expect("known").apply().expect("permitted");
        assert_eq!(count(&Cpus::allowed().expect("readable")), 1);
        allowed.apply().expect("permitted");
        assert_eq!(count(&Cpus::allowed().expect("readable")), count(&allowed));
    }
}
