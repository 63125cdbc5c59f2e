//! Which kind of file system a file is on.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use equipoise_reporting::problem::Problem;

use crate::system::expect;

/// Its name, or its magic number (statfs(2)) where it is none of the usual ones.
///
/// # Errors
/// What `fstatfs` says.
pub fn kind_of(file: &File) -> Result<String, Problem> {
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the answer can be written.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) };
    expect("fstatfs", result, 0)?;
    // SAFETY: the call filled it.
    let magic = unsafe { found.assume_init() }.f_type;
    Ok(match magic {
        0xEF53 => "ext".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x794C_7630 => "overlay".to_owned(),
        0x9123_683E => "btrfs".to_owned(),
        0x2FC1_2FC1 => "zfs".to_owned(),
        0x6969 => "nfs".to_owned(),
        other => format!("{other:#x}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_on_a_file_system_of_their_own() {
        let file = File::open("/proc/self/status").expect("readable");
        assert_eq!(kind_of(&file).expect("known"), "0x9fa0");
    }
}
