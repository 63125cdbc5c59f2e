//! Probe `null_call_int80`: the same call through the interrupt of 32-bit programs.
//!
//! The texts argue about what the way into the kernel costs.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "null_call_int80",
    class: Class::SystemCalls,
    words: "getppid by int 0x80, the way of 32-bit programs",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "an x86 processor and a kernel that runs 32-bit programs",
    rows: &[Row::plain("null_call_int80")],
    open,
};

#[cfg(not(target_arch = "x86_64"))]
fn open(_: &Asked) -> Result<Opened, Problem> {
    Err(Problem::unavailable("int 0x80 is a way of x86 processors"))
}

#[cfg(target_arch = "x86_64")]
fn open(_: &Asked) -> Result<Opened, Problem> {
    use crate::probe::timed;
    use crate::system::expect;

    see_that_it_comes_back()?;
    let parent = std::os::unix::process::parent_id().cast_signed();
    Ok(Opened::latency(move |count| {
        timed(count, || expect("getppid", getppid_by_interrupt(), parent))
    }))
}

/// A kernel that runs no 32-bit programs kills who asks for one of their calls.
#[cfg(target_arch = "x86_64")]
fn see_that_it_comes_back() -> Result<(), Problem> {
    use crate::child::Child;

    let status = Child::start(|| {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the limit can be read. If it is refused there may be a core file, no more.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
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
    /// In the table of 32-bit programs.
    const GETPPID: i32 = 64;
    let result: i32;
    // SAFETY: takes nothing and changes nothing; older kernels clear the registers r8 to r11.
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
