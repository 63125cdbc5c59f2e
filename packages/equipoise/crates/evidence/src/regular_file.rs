//! Opens files that another user may have made: without waiting, and only if they are regular.
//!
//! A FIFO would make the reader wait for a writer, and a device may have no end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Whether a symbolic link is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Follow,
    Refuse,
}

/// Opens a file; any other thing than a regular file is an error.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let follow = match links {
        Links::Follow => 0,
        Links::Refuse => libc::O_NOFOLLOW,
    };
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | follow)
        .open(path)?;
    if !opened.metadata()?.is_file() {
        let kind = io::ErrorKind::InvalidInput;
        return Err(io::Error::new(kind, "it is not a regular file"));
    }
    Ok(opened)
}

pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, Links::Follow)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_an_end_is_not_read() {
        let error = read(Path::new("/dev/zero")).expect_err("a device is not a regular file");
        assert_eq!(error.to_string(), "it is not a regular file");
    }

    #[test]
    fn a_link_to_a_regular_file_may_be_followed() {
        assert!(open(Path::new("/proc/self/exe"), Links::Follow).is_ok());
        assert!(open(Path::new("/proc/self/exe"), Links::Refuse).is_err());
    }
}
