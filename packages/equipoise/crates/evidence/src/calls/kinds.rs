//! The meaning of system calls and their arguments, as far as `account` needs it.

use syscalls::Sysno;

/// How a system call uses a descriptor: its first argument, unless a variant names another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDescriptor {
    /// Reads from the descriptor and returns the number of bytes.
    Reads,
    /// Writes to the descriptor and returns the number of bytes.
    Writes,
    /// Waits until the written data are on the disk.
    Syncs,
    /// Reads from the descriptor in the second argument, and writes to the first argument's.
    Copies,
    Closes,
    /// Closes the descriptor in the second argument, and makes it a copy of the first argument's.
    Replaces,
}

impl OnDescriptor {
    /// Whether the call returns a number of bytes.
    pub fn returns_bytes(self) -> bool {
        matches!(self, Self::Reads | Self::Writes | Self::Copies)
    }
}

/// Returns the name of a system call; `call_NUMBER` if it is unknown.
pub fn name(number: u64) -> String {
    known(number).map_or_else(|| format!("call_{number}"), |call| call.name().to_owned())
}

pub fn known(number: u64) -> Option<Sysno> {
    usize::try_from(number).ok().and_then(Sysno::new)
}

/// Returns the index of the argument that is a number of bytes.
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

/// Returns the index of the argument that selects the operation of the call.
pub fn mode_argument(call: Sysno) -> Option<usize> {
    Some(match call {
        Sysno::madvise => 2,
        Sysno::futex | Sysno::fcntl | Sysno::ioctl => 1,
        _ => return None,
    })
}

/// Returns how a system call uses a descriptor; `None` if the use is not counted.
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
    let on_all_architectures = matches!(
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
    on_all_architectures || on_x86_64
}
