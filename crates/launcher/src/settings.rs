//! What a trial may ask of its own process before its program begins.

use std::io;
use std::ptr;

use crate::affinity::Cpus;
use crate::protocol::User;

/// What is set for one process. What was not asked for stays as the launcher has it.
#[derive(Clone, Copy, Default)]
pub struct Settings {
    /// The CPUs that it may use.
    pub cpus: Option<Cpus>,
    /// Whether its addresses are drawn at random.
    pub random_addresses: Option<bool>,
    /// Whom it runs as.
    pub user: Option<User>,
}

/// What could not be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The CPUs.
    Cpus,
    /// The randomisation of addresses.
    Addresses,
    /// The user.
    User,
}

impl Settings {
    /// Sets it all for this thread, which is about to execute a program.
    ///
    /// Safe to call between vfork and exec: it changes nothing that a parent shares.
    ///
    /// # Errors
    /// What could not be set; the system's reason is its last error.
    pub fn apply(&self) -> Result<(), Setting> {
        if self
            .random_addresses
            .is_some_and(|wanted| !randomise(wanted))
        {
            return Err(Setting::Addresses);
        }
        if self.cpus.is_some_and(|cpus| cpus.apply().is_err()) {
            return Err(Setting::Cpus);
        }
        // Last of all: who has become somebody else may not be permitted the rest.
        match self.user {
            Some(user) if !become_user(user) => Err(Setting::User),
            _ => Ok(()),
        }
    }
}

/// Gives up every right of ours for those of a user, for this thread alone.
///
/// The C library's functions would change all threads of a process whose memory we share, so
/// these are the system calls themselves.
fn become_user(user: User) -> bool {
    const NO_GROUPS: libc::c_ulong = 0;
    let (uid, gid) = (libc::c_ulong::from(user.uid), libc::c_ulong::from(user.gid));
    // SAFETY: passes numbers only, and a list of no groups.
    unsafe {
        libc::syscall(libc::SYS_setgroups, NO_GROUPS, ptr::null::<libc::gid_t>()) == 0
            && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
            && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
            // The kernel forgets it with every change of user.
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
    }
}

fn randomise(wanted: bool) -> bool {
    const ASK: libc::c_ulong = 0xffff_ffff;
    const FIXED: libc::c_ulong = libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: takes a number and touches no memory.
    let Ok(present) = libc::c_ulong::try_from(unsafe { libc::personality(ASK) }) else {
        return false;
    };
    let changed = if wanted {
        present & !FIXED
    } else {
        present | FIXED
    };
    // SAFETY: as above.
    unsafe { libc::personality(changed) >= 0 }
}

/// Huge pages as a child shall find them, until this is dropped.
///
/// The kernel keeps the setting with the memory of a process, and a child that shares ours
/// until it executes takes it from there: so we set it for ourselves, and set it back.
pub struct HugePages {
    before: Option<bool>,
}

impl HugePages {
    /// Lets this process, and what it starts, have transparent huge pages or not.
    ///
    /// # Errors
    /// What `prctl` says.
    pub fn set(wanted: Option<bool>) -> io::Result<Self> {
        let Some(wanted) = wanted else {
            return Ok(Self { before: None });
        };
        let before = huge_pages_allowed()?;
        allow_huge_pages(wanted)?;
        Ok(Self {
            before: Some(before),
        })
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It could be set a moment ago, so it can be set back.
            drop(allow_huge_pages(before));
        }
    }
}

fn huge_pages_allowed() -> io::Result<bool> {
    // SAFETY: takes numbers and touches no memory.
    match unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) } {
        disabled if disabled >= 0 => Ok(disabled == 0),
        _ => Err(io::Error::last_os_error()),
    }
}

fn allow_huge_pages(wanted: bool) -> io::Result<()> {
    let disable = libc::c_ulong::from(!wanted);
    let nothing: libc::c_ulong = 0;
    // SAFETY: as above.
    let status =
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, nothing, nothing, nothing) };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_as_before_when_it_is_over() {
        let before = huge_pages_allowed().expect("readable");
        let set = HugePages::set(Some(!before)).expect("permitted");
        assert_eq!(huge_pages_allowed().expect("readable"), !before);
        drop(set);
        assert_eq!(huge_pages_allowed().expect("readable"), before);
    }

    #[test]
    fn only_root_becomes_somebody_else_and_only_in_one_thread() {
        let nobody = Settings {
            user: Some(User {
                uid: 65_534,
                gid: 65_534,
            }),
            ..Settings::default()
        };
        // SAFETY: takes nothing and returns a number.
        let own = || unsafe { libc::syscall(libc::SYS_geteuid) };
        let before = own();
        let (applied, after) = std::thread::spawn(move || (nobody.apply(), own()))
            .join()
            .expect("it ends");
        if before == 0 {
            assert_eq!((applied, after), (Ok(()), 65_534));
        } else {
            assert_eq!((applied, after), (Err(Setting::User), before));
        }
        assert_eq!(own(), before);
    }

    #[test]
    fn nothing_is_set_that_was_not_asked_for() {
        assert_eq!(Settings::default().apply(), Ok(()));
        assert!(
            HugePages::set(None)
                .expect("nothing to do")
                .before
                .is_none()
        );
    }
}
