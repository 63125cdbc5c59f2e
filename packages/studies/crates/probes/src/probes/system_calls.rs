//! `null_call`, `read_byte`, `stat` and others: system calls with almost no work.

use std::ffi::CStr;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;

use equipoise_reporting::problem::Problem;

use crate::child::Child;
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, timed};
use crate::scratch::file_system_of;
use crate::system::{check_negative, check_result, problem_of, wrong_result};

pub const NULL_CALL: Probe = Probe {
    name: "null_call",
    summary: "getppid by the system call itself",
    ..Probe::latency(Class::SystemCalls, open_null_call)
};

#[expect(clippy::unnecessary_wraps, reason = "opening any probe may fail")]
fn open_null_call(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let parent = libc::c_long::from(std::os::unix::process::parent_id());
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            // SAFETY: takes no arguments and changes nothing.
            let number = unsafe { libc::syscall(libc::SYS_getppid) };
            check_result("getppid", number, parent)
        })
    }))
}

/// Probe `null_call_int80`: an older instruction that enters the kernel.
pub const NULL_CALL_INT80: Probe = Probe {
    name: "null_call_int80",
    summary: "getppid by int 0x80, the way of 32-bit programs",
    needs: "an x86 processor and a kernel that runs 32-bit programs",
    ..Probe::latency(Class::SystemCalls, open_null_call_int80)
};

#[cfg(not(target_arch = "x86_64"))]
fn open_null_call_int80(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    Err(Problem::unavailable("int 0x80 is a way of x86 processors"))
}

#[cfg(target_arch = "x86_64")]
fn open_null_call_int80(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    check_support()?;
    let parent = std::os::unix::process::parent_id().cast_signed();
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            check_result("getppid", getppid_by_interrupt(), parent)
        })
    }))
}

/// Checks whether the kernel has 32-bit system calls. A child tries one, and is killed without
/// them.
#[cfg(target_arch = "x86_64")]
fn check_support() -> Result<(), Problem> {
    let status = Child::start(|| {
        let zero_limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the limit can be read. If the call fails, there may be a core file.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const zero_limit) };
        getppid_by_interrupt();
        Ok(())
    })?
    .wait()?;
    if status.success() {
        return Ok(());
    }
    Err(Problem::unavailable(format!(
        "this kernel has no system calls of 32-bit programs: int 0x80 ends in {status}"
    )))
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn getppid_by_interrupt() -> libc::pid_t {
    /// Number of the system call for 32-bit programs.
    const GETPPID: i32 = 64;
    let result: i32;
    // SAFETY: takes no arguments and changes nothing; older kernels clear the registers r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") GETPPID => result,
            lateout("r8") _,
            lateout("r9") _,
            lateout("r10") _,
            lateout("r11") _,
        );
    }
    result
}

pub const READ_BYTE: Probe = Probe {
    name: "read_byte",
    summary: "read of one byte from /dev/zero",
    needs: "/dev/zero",
    ..Probe::latency(Class::SystemCalls, open_read_byte)
};

fn open_read_byte(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file = File::open("/dev/zero").map_err(problem_of("/dev/zero"))?;
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            let mut byte = 1_u8;
            // SAFETY: the byte is valid for writing.
            let read = unsafe { libc::read(file.as_raw_fd(), (&raw mut byte).cast(), 1) };
            check_result("read", read, 1)?;
            if byte != 0 {
                return Err(wrong_result("/dev/zero", byte, 0));
            }
            Ok(())
        })
    }))
}

pub const WRITE_BYTE: Probe = Probe {
    name: "write_byte",
    summary: "write of one byte to /dev/null",
    needs: "/dev/null",
    ..Probe::latency(Class::SystemCalls, open_write_byte)
};

fn open_write_byte(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file = File::options()
        .write(true)
        .open("/dev/null")
        .map_err(problem_of("/dev/null"))?;
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            let byte = 0_u8;
            // SAFETY: the byte is valid for reading.
            let written = unsafe { libc::write(file.as_raw_fd(), (&raw const byte).cast(), 1) };
            check_result("write", written, 1)
        })
    }))
}

pub const STAT: Probe = Probe {
    name: "stat",
    summary: "stat of /etc/passwd",
    needs: "/etc/passwd",
    ..Probe::latency(Class::SystemCalls, open_stat)
};

fn open_stat(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file_system = check_readable()?;
    let expected = inode_number()?;
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            let number = inode_number()?;
            if number != expected {
                return Err(wrong_result("stat", number, expected));
            }
            Ok(())
        })
    })
    .with_fact("file_system", file_system))
}

#[inline]
fn inode_number() -> Result<libc::ino_t, Problem> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path ends with a null byte, and the answer can be written.
    let result = unsafe { libc::stat(PASSWD.as_ptr(), status.as_mut_ptr()) };
    check_result("stat", result, 0)?;
    // SAFETY: the call filled it.
    Ok(unsafe { status.assume_init() }.st_ino)
}

pub const OPEN_CLOSE: Probe = Probe {
    name: "open_close",
    summary: "open of /etc/passwd for reading, and close",
    needs: "/etc/passwd",
    ..Probe::latency(Class::SystemCalls, open_and_close)
};

fn open_and_close(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let file_system = check_readable()?;
    Ok(OpenProbe::latency(move |count| {
        timed(count, || {
            // SAFETY: the path ends with a null byte.
            let descriptor = unsafe { libc::open(PASSWD.as_ptr(), libc::O_RDONLY) };
            let descriptor = check_negative("open", descriptor)?;
            // SAFETY: a descriptor that was opened just now, without another owner.
            check_result("close", unsafe { libc::close(descriptor) }, 0)
        })
    })
    .with_fact("file_system", file_system))
}

/// A path of two components. It exists on nearly every Linux, and every user may read it.
const PASSWD: &CStr = c"/etc/passwd";

/// Returns the name of the file system of `/etc/passwd`; unavailable if the file cannot be read.
fn check_readable() -> Result<String, Problem> {
    let path = Path::new(PASSWD.to_str().expect("it is ASCII"));
    let file = File::open(path)
        .map_err(|error| Problem::unavailable(format!("{}: {error}", path.display())))?;
    file_system_of(&file)
}
