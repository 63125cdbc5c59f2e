//! Settings of the process of a trial, made before its program begins.

use std::io;
use std::ptr;

use equipoise_kernel::call::check;
use equipoise_kernel::child::die_with_parent;
use equipoise_kernel::cpus::Cpus;

use crate::protocol::User;

/// Settings of one process. An absent setting is inherited from the launcher.
#[derive(Clone, Copy, Default)]
pub struct Settings {
    /// CPUs that it may use.
    pub cpus: Option<Cpus>,
    /// Whether its addresses are drawn at random.
    pub random_addresses: Option<bool>,
    /// User that it runs as.
    pub user: Option<User>,
}

/// One of the settings.
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
    /// Applies every setting to this thread, which is about to execute a program.
    ///
    /// Safe to call between vfork and exec: it changes nothing that a parent shares. Returns the
    /// setting that was refused; the reason is the last error of this thread.
    pub fn apply(&self) -> Result<(), Setting> {
        if self
            .random_addresses
            .is_some_and(|random| !randomise(random))
        {
            return Err(Setting::Addresses);
        }
        if self.cpus.is_some_and(|cpus| cpus.apply().is_err()) {
            return Err(Setting::Cpus);
        }
        // Last: another user may lack the permission for the others.
        match self.user {
            Some(user) if !become_user(user) => Err(Setting::User),
            _ => Ok(()),
        }
    }
}

/// Becomes a user, with its rights only, in this thread alone.
///
/// These are the system calls themselves: the functions of the C library would change all threads of
/// the launcher, whose memory is shared.
fn become_user(user: User) -> bool {
    const NO_GROUPS: libc::c_ulong = 0;
    let (uid, gid) = (libc::c_ulong::from(user.uid), libc::c_ulong::from(user.gid));
    // SAFETY: passes numbers only, and a list of no groups.
    unsafe {
        libc::syscall(libc::SYS_setgroups, NO_GROUPS, ptr::null::<libc::gid_t>()) == 0
            && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
            && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
            // The kernel forgets it with every change of user.
            && die_with_parent().is_ok()
    }
}

fn randomise(random: bool) -> bool {
    const QUERY: libc::c_ulong = 0xffff_ffff;
    const FIXED: libc::c_ulong = libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: takes a number and touches no memory.
    let Ok(present) = libc::c_ulong::try_from(unsafe { libc::personality(QUERY) }) else {
        return false;
    };
    let changed = present & !FIXED | if random { 0 } else { FIXED };
    // SAFETY: as above.
    unsafe { libc::personality(changed) >= 0 }
}

/// The setting of huge pages for children, until this is dropped.
///
/// The kernel keeps the setting with the memory of a process. A child shares the memory of the
/// launcher until it executes, and takes the setting from there.
pub struct HugePages {
    before: Option<bool>,
}

impl HugePages {
    /// Allows or forbids transparent huge pages to this process and its children.
    pub fn set(allowed: Option<bool>) -> io::Result<Self> {
        let Some(allowed) = allowed else {
            return Ok(Self { before: None });
        };
        let before = Some(huge_pages_allowed()?);
        allow_huge_pages(allowed)?;
        Ok(Self { before })
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
    check(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) })
        .map(|disabled| disabled == 0)
}

fn allow_huge_pages(allowed: bool) -> io::Result<()> {
    let disable = libc::c_ulong::from(!allowed);
    let nothing: libc::c_ulong = 0;
    // SAFETY: as above.
    check(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, nothing, nothing, nothing) })
        .map(drop)
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
        // SAFETY: takes no arguments and returns a number.
        let user = || unsafe { libc::syscall(libc::SYS_geteuid) };
        let before = user();
        let (applied, after) = std::thread::spawn(move || (nobody.apply(), user()))
            .join()
            .expect("it ends");
        if before == 0 {
            assert_eq!((applied, after), (Ok(()), 65_534));
        } else {
            assert_eq!((applied, after), (Err(Setting::User), before));
        }
        assert_eq!(user(), before);
    }

    #[test]
    fn a_setting_that_is_absent_changes_nothing() {
        assert_eq!(Settings::default().apply(), Ok(()));
        let huge_pages = HugePages::set(None).expect("nothing to do");
        assert!(huge_pages.before.is_none());
    }
}
