//! Probe `protection_fault`: a write that is forbidden, as the program hears of it.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "protection_fault",
    class: Class::Signals,
    words: "a write to a read-only page, and a handler of SIGSEGV that steps over it",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: None,
    count: None,
    needs: "an x86-64 or AArch64 processor",
    rows: &[Row::plain("protection_fault")],
    open,
};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn open(_: &Asked) -> Result<Opened, Problem> {
    Err(Problem::unavailable(
        "how a handler steps over a write is written for x86-64 and AArch64 only",
    ))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn open(_: &Asked) -> Result<Opened, Problem> {
    use crate::handlers::{Action, handled, see_that_handled};
    use crate::mapping::{Mapping, page_size};
    use crate::probe::timed;
    use crate::system::expect;

    let page = page_size()?;
    let mapping = Mapping::new(page)?;
    mapping.touch_each(page, 0..page);
    let start = mapping.start().as_ptr();
    // SAFETY: our own mapping, which nobody writes to but the forbidden write.
    let result = unsafe { libc::mprotect(start.cast(), page, libc::PROT_READ) };
    expect("mprotect", result, 0)?;
    let handler = step_over as *const () as libc::sighandler_t;
    Action::new(handler, libc::SA_SIGINFO).install(libc::SIGSEGV)?;
    Ok(Opened::latency(move |count| {
        let forbidden = mapping.start().as_ptr();
        let before = handled();
        let took = timed(count, || {
            write_forbidden(forbidden);
            Ok(())
        })?;
        see_that_handled(count, before)?;
        Ok(took)
    }))
}

/// The one instruction that writes, as long as [`step_over`] takes it to be.
#[cfg(target_arch = "x86_64")]
#[inline]
fn write_forbidden(address: *mut u8) {
    // SAFETY: the page cannot be written, so that nothing is.
    unsafe { std::arch::asm!("mov byte ptr [rax], 1", in("rax") address, options(nostack)) };
}

/// As above.
#[cfg(target_arch = "aarch64")]
#[inline]
fn write_forbidden(address: *mut u8) {
    // SAFETY: the page cannot be written, so that nothing is.
    unsafe { std::arch::asm!("strb wzr, [{}]", in(reg) address, options(nostack)) };
}

#[cfg(target_arch = "x86_64")]
extern "C" fn step_over(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    const WRITE: [u8; 3] = [0xC6, 0x00, 0x01];
    // SAFETY: the kernel gives a handler with SA_SIGINFO the context that it will go on from.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = &mut registers[usize::try_from(libc::REG_RIP).unwrap_or_default()];
    // SAFETY: the program was executing there, so there are instructions to read.
    if unsafe { *(*at as *const [u8; 3]) } != WRITE {
        return give_up();
    }
    *at += 3;
    crate::handlers::count_one();
}

#[cfg(target_arch = "aarch64")]
extern "C" fn step_over(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    const STRB_OF_ZERO: u32 = 0x3900_001F;
    const BUT_THE_ADDRESS: u32 = 0xFFFF_FC1F;
    // SAFETY: the kernel gives a handler with SA_SIGINFO the context that it will go on from.
    let at = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.pc };
    // SAFETY: the program was executing there, so there is an instruction to read.
    if unsafe { *(*at as *const u32) } & BUT_THE_ADDRESS != STRB_OF_ZERO {
        return give_up();
    }
    *at += 4;
    crate::handlers::count_one();
}

/// The fault is one of our own; it must kill the probe and not be stepped over.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn give_up() {
    // SAFETY: the default action, after which the instruction faults again.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
}
