//! Creates a child that has its own stack and, until its exec, shares the launcher's memory
//! (`vfork`).

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// Function that a child runs. The function must not return.
pub type Entry = extern "C" fn(*mut c_void) -> libc::c_int;

/// Stack that a child uses until it executes its program; only one child uses it at a time.
pub struct Stack {
    bottom: *mut c_void,
}

/// Size of the stack, ample for the system calls. Only touched pages use memory.
const STACK_BYTES: usize = 64 << 10;

impl Stack {
    pub fn new() -> io::Result<Self> {
        // SAFETY: a new anonymous mapping, at any address.
        let bottom = unsafe {
            libc::mmap(
                ptr::null_mut(),
                STACK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if bottom == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { bottom })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping of `new`, and no child runs on it.
        unsafe { libc::munmap(self.bottom, STACK_BYTES) };
    }
}

/// Creates a child that runs `entry(argument)` in the launcher's memory while the launcher sleeps.
///
/// If a cgroup is given, the child starts in it. Returns its process id and descriptor.
///
/// # Safety
/// `entry` must end by exec or `_exit`, and must not harm the memory that it shares.
pub unsafe fn vfork_with(
    stack: &Stack,
    cgroup: Option<BorrowedFd<'_>>,
    entry: Entry,
    argument: *mut c_void,
) -> io::Result<(libc::pid_t, OwnedFd)> {
    let mut descriptor: libc::c_int = -1;
    let pid = match cgroup {
        // SAFETY: as the caller promises; `descriptor` is valid for writing.
        None => unsafe { clone_without_cgroup(stack, &raw mut descriptor, entry, argument) },
        // SAFETY: as above.
        Some(cgroup) => unsafe {
            clone_into_cgroup(stack, cgroup, &raw mut descriptor, entry, argument)
        },
    }?;
    // SAFETY: CLONE_PIDFD stored a new descriptor (close-on-exec) without another owner.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

unsafe fn clone_without_cgroup(
    stack: &Stack,
    descriptor: *mut libc::c_int,
    entry: Entry,
    argument: *mut c_void,
) -> io::Result<libc::pid_t> {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the stack is unused and grows downwards from its end; the caller promises the rest.
    let pid = unsafe {
        let top = stack.bottom.byte_add(STACK_BYTES);
        libc::clone(entry, top, flags, argument, descriptor)
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pid)
}

/// Whether `clone_into_cgroup` supports this processor.
pub const CAN_ENTER_CGROUP: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe fn clone_into_cgroup(
    stack: &Stack,
    cgroup: BorrowedFd<'_>,
    descriptor: *mut libc::c_int,
    entry: Entry,
    argument: *mut c_void,
) -> io::Result<libc::pid_t> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
    let number = |value: libc::c_int| u64::try_from(value).expect("not negative");
    // SAFETY: an all-zero request is valid.
    let mut request: libc::clone_args = unsafe { std::mem::zeroed() };
    request.flags = number(flags) | CLONE_INTO_CGROUP;
    request.pidfd = descriptor as u64;
    request.exit_signal = number(libc::SIGCHLD);
    request.stack = stack.bottom as u64;
    request.stack_size = STACK_BYTES as u64;
    request.cgroup = number(cgroup.as_raw_fd());
    // SAFETY: the request is complete, and its stack is unused; the caller promises the rest.
    let result = unsafe { clone3_then_call(&raw mut request, entry, argument) };
    if result < 0 {
        let errno = i32::try_from(-result).unwrap_or(libc::EINVAL);
        return Err(io::Error::from_raw_os_error(errno));
    }
    libc::pid_t::try_from(result).map_err(io::Error::other)
}

/// Makes the system call clone3, after which the child calls `entry`. The code is in assembly,
/// because the child's new stack has no frame to which a Rust function could return.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3_then_call(
    request: *mut libc::clone_args,
    entry: Entry,
    argument: *mut c_void,
) -> i64 {
    let result: i64;
    // SAFETY: in the parent only the named registers change; the child never returns.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") request,
            in("rsi") size_of::<libc::clone_args>(),
            in("r12") entry,
            in("r13") argument,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn clone3_then_call(
    request: *mut libc::clone_args,
    entry: Entry,
    argument: *mut c_void,
) -> i64 {
    let result: i64;
    // SAFETY: in the parent only the named registers change; the child never returns.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            inlateout("x0") request => result,
            in("x1") size_of::<libc::clone_args>(),
            in("x8") libc::SYS_clone3,
            in("x20") argument,
            in("x21") entry,
        );
    }
    result
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone_into_cgroup(
    _stack: &Stack,
    _cgroup: BorrowedFd<'_>,
    _descriptor: *mut libc::c_int,
    _entry: Entry,
    _argument: *mut c_void,
) -> io::Result<libc::pid_t> {
    Err(io::ErrorKind::Unsupported.into())
}
