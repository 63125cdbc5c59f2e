//! Meaning of the arguments of system calls, as far as they are accounted for.

use syscalls::Sysno;

/// Use of a descriptor, which is the first argument unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDescriptor {
    /// Returns how many bytes it read.
    Reads,
    /// Returns how many bytes it wrote.
    Writes,
    /// Waits until written data are stored.
    Syncs,
    /// Reads from its second argument and writes to its first.
    Copies,
    /// Frees the number.
    Closes,
    /// Makes its second argument mean the same file.
    Replaces,
}

impl OnDescriptor {
    /// Whether the call returns a number of bytes.
    pub fn returns_bytes(self) -> bool {
        matches!(self, Self::Reads | Self::Writes | Self::Copies)
    }
}

/// The call's name, or its number.
pub fn name(number: u64) -> String {
    known(number).map_or_else(|| format!("call_{number}"), |call| call.name().to_owned())
}

pub fn known(number: u64) -> Option<Sysno> {
    usize::try_from(number).ok().and_then(Sysno::new)
}

/// Returns the argument with the number of bytes.
pub fn size_argument(call: Sysno) -> Option<usize> {
    Some(match call {
        Sysno::mmap
        | Sysno::munmap
        | Sysno::madvise
        | Sysno::mremap
        | Sysno::mprotect
        | Sysno::msync
        | Sysno::getrandom
        | Sysno::ftruncate => 1,
        Sysno::read
        | Sysno::write
        | Sysno::pread64
        | Sysno::pwrite64
        | Sysno::sendto
        | Sysno::recvfrom
        | Sysno::getdents64 => 2,
        Sysno::sendfile => 3,
        Sysno::copy_file_range | Sysno::splice => 4,
        _ => return None,
    })
}

/// Returns the argument that selects the operation of the call.
pub fn mode_argument(call: Sysno) -> Option<usize> {
    Some(match call {
        Sysno::madvise => 2,
        Sysno::futex | Sysno::fcntl | Sysno::ioctl => 1,
        _ => return None,
    })
}

pub fn on_descriptor(call: Sysno) -> Option<OnDescriptor> {
    Some(match call {
        Sysno::read
        | Sysno::pread64
        | Sysno::readv
        | Sysno::preadv
        | Sysno::preadv2
        | Sysno::recvfrom
        | Sysno::recvmsg
        | Sysno::getdents64 => OnDescriptor::Reads,
        Sysno::write
        | Sysno::pwrite64
        | Sysno::writev
        | Sysno::pwritev
        | Sysno::pwritev2
        | Sysno::sendto
        | Sysno::sendmsg => OnDescriptor::Writes,
        Sysno::fsync | Sysno::fdatasync | Sysno::syncfs | Sysno::sync_file_range => {
            OnDescriptor::Syncs
        }
        Sysno::sendfile => OnDescriptor::Copies,
        Sysno::close => OnDescriptor::Closes,
        Sysno::dup3 => OnDescriptor::Replaces,
        #[cfg(target_arch = "x86_64")]
        Sysno::dup2 => OnDescriptor::Replaces,
        _ => return None,
    })
}

/// Whether a call mostly waits for another thread, process or device.
pub fn waits(call: Sysno) -> bool {
    let anywhere = matches!(
        call,
        Sysno::futex
            | Sysno::nanosleep
            | Sysno::clock_nanosleep
            | Sysno::wait4
            | Sysno::waitid
            | Sysno::ppoll
            | Sysno::pselect6
            | Sysno::epoll_pwait
            | Sysno::epoll_pwait2
            | Sysno::accept
            | Sysno::accept4
            | Sysno::flock
            | Sysno::rt_sigtimedwait
            | Sysno::rt_sigsuspend
            | Sysno::semtimedop
    );
    #[cfg(target_arch = "x86_64")]
    let on_x86_64 = matches!(
        call,
        Sysno::poll | Sysno::select | Sysno::epoll_wait | Sysno::pause
    );
    #[cfg(not(target_arch = "x86_64"))]
    let on_x86_64 = false;
    anywhere || on_x86_64
}
