//! System calls, and where the program begins, for each processor.

#[cfg(target_arch = "x86_64")]
mod numbers {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const MMAP: usize = 9;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const WAIT4: usize = 61;
    pub const PRCTL: usize = 157;
    pub const CLOCK_GETTIME: usize = 228;
    pub const EXIT_GROUP: usize = 231;
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub const READ: usize = 63;
    pub const WRITE: usize = 64;
    pub const MMAP: usize = 222;
    pub const CLONE: usize = 220;
    pub const EXECVE: usize = 221;
    pub const WAIT4: usize = 260;
    pub const PRCTL: usize = 167;
    pub const CLOCK_GETTIME: usize = 113;
    pub const EXIT_GROUP: usize = 94;
}

pub use numbers::*;

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call begin",
    "ud2",
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x0, sp",
    "bl begin",
    "brk #1",
);

/// A system call; a negative result is an error number.
///
/// # Safety
/// As the call itself.
#[cfg(target_arch = "x86_64")]
pub unsafe fn call(number: usize, with: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes the named registers only, and memory as the caller allows.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") with[0],
            in("rsi") with[1],
            in("rdx") with[2],
            in("r10") with[3],
            in("r8") with[4],
            in("r9") with[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// As above.
///
/// # Safety
/// As the call itself.
#[cfg(target_arch = "aarch64")]
pub unsafe fn call(number: usize, with: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes the named registers only, and memory as the caller allows.
    unsafe {
        core::arch::asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") with[0] => result,
            in("x1") with[1],
            in("x2") with[2],
            in("x3") with[3],
            in("x4") with[4],
            in("x5") with[5],
            options(nostack),
        );
    }
    result
}
