//! Settings of a trial's process (CPUs, address randomisation, user, huge pages). The launcher
//! applies them before the program starts.

use std::io;
use std::ptr;

use equipoise_kernel::call::check;
use equipoise_kernel::child::die_with_parent;
use equipoise_kernel::cpus::Cpus;

use crate::protocol::User;

/// Settings of one process. An absent setting is inherited from the launcher.
#[derive(Clone, Copy, Default)]
pub struct Settings {
    pub cpus: Option<Cpus>,
    pub random_addresses: Option<bool>,
    pub user: Option<User>,
}

/// A setting that the kernel may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    Cpus,
    Addresses,
    User,
}

impl Settings {
    /// Applies every setting to this thread, which is about to execute a program. Safe to call
    /// between vfork and exec, because it changes nothing that the parent shares. The error is the
    /// refused setting; the last error of this thread has the reason.
    pub fn apply(&self) -> Result<(), Setting> {
        if self
            .random_addresses
            .is_some_and(|random| !set_random_addresses(random))
        {
            return Err(Setting::Addresses);
        }
        if self.cpus.is_some_and(|cpus| cpus.apply().is_err()) {
            return Err(Setting::Cpus);
        }
        // This comes last: another user may lack the permission for the other settings.
        match self.user {
            Some(user) if !become_user(user) => Err(Setting::User),
            _ => Ok(()),
        }
    }
}

/// Changes the user and the group of this thread alone, and returns whether the kernel allowed it.
/// The functions of the C library would change all threads of the launcher, whose memory is shared.
/// So the system calls are made directly.
fn become_user(user: User) -> bool {
    const NO_GROUPS: libc::c_ulong = 0;
    let (uid, gid) = (libc::c_ulong::from(user.uid), libc::c_ulong::from(user.gid));
    // SAFETY: passes numbers only, and a list of no groups.
    unsafe {
        libc::syscall(libc::SYS_setgroups, NO_GROUPS, ptr::null::<libc::gid_t>()) == 0
            && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
            && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
            // A change of user resets the signal for the death of the parent.
            && die_with_parent().is_ok()
    }
}

/// Turns address randomisation on or off; returns whether the kernel allowed it.
fn set_random_addresses(random: bool) -> bool {
    /// Argument of personality(2) that changes nothing and returns the current flags.
    const QUERY: libc::c_ulong = 0xffff_ffff;
    const FIXED: libc::c_ulong = libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: takes a number and touches no memory.
    let Ok(flags) = libc::c_ulong::try_from(unsafe { libc::personality(QUERY) }) else {
        return false;
    };
    let new_flags = flags & !FIXED | if random { 0 } else { FIXED };
    // SAFETY: as above.
    unsafe { libc::personality(new_flags) >= 0 }
}

/// Sets whether children may use huge pages, and restores the old setting when dropped. The setting
/// belongs to the memory of a process. A child shares the memory of the launcher until it executes
/// its program, and then inherits the setting.
pub struct HugePages {
    allowed_before: Option<bool>,
}

impl HugePages {
    /// Allows or forbids transparent huge pages to this process and its children.
    pub fn set(allowed: Option<bool>) -> io::Result<Self> {
        let Some(allowed) = allowed else {
            return Ok(Self {
                allowed_before: None,
            });
        };
        let allowed_before = Some(are_huge_pages_allowed()?);
        allow_huge_pages(allowed)?;
        Ok(Self { allowed_before })
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Some(allowed) = self.allowed_before {
            // The kernel has just accepted a change of this setting, so an error is unlikely.
            drop(allow_huge_pages(allowed));
        }
    }
}

fn are_huge_pages_allowed() -> io::Result<bool> {
    // SAFETY: takes numbers and touches no memory.
    check(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) })
        .map(|disabled| disabled == 0)
}

fn allow_huge_pages(allowed: bool) -> io::Result<()> {
    let disable = libc::c_ulong::from(!allowed);
    let zero: libc::c_ulong = 0;
    // SAFETY: as above.
    check(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, zero, zero, zero) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_guard_restores_the_setting_of_huge_pages() {
        let before = are_huge_pages_allowed().expect("readable");
        let guard = HugePages::set(Some(!before)).expect("permitted");
        assert_eq!(are_huge_pages_allowed().expect("readable"), !before);
        drop(guard);
        assert_eq!(are_huge_pages_allowed().expect("readable"), before);
    }

    #[test]
    fn only_root_can_change_the_user_and_only_of_one_thread() {
        let nobody = Settings {
            user: Some(User {
                uid: 65_534,
                gid: 65_534,
            }),
            ..Settings::default()
        };
        // SAFETY: takes no arguments and returns a number.
        let user_id = || unsafe { libc::syscall(libc::SYS_geteuid) };
        let before = user_id();
        let (result, after) = std::thread::spawn(move || (nobody.apply(), user_id()))
            .join()
            .expect("the thread ends");
        if before == 0 {
            assert_eq!((result, after), (Ok(()), 65_534));
        } else {
            assert_eq!((result, after), (Err(Setting::User), before));
        }
        assert_eq!(user_id(), before);
    }

    #[test]
    fn absent_settings_change_nothing() {
        assert_eq!(Settings::default().apply(), Ok(()));
        let huge_pages = HugePages::set(None).expect("nothing to do");
        assert!(huge_pages.allowed_before.is_none());
    }
}
