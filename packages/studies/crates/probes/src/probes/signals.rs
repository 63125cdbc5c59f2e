//! `signal_install`, `signal_handle`, `protection_fault`: signals, and faults that become signals.

use equipoise_reporting::problem::Problem;

use crate::batches::{subtract, time_to_subtract};
use crate::handlers::{
    Action, check_handled, count_signal, counting_handler, handled, send_signal,
};
use crate::memory::{Mapping, page_size};
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, timed};
use crate::system::check_result;

/// The signal that the first two probes use.
const SIGNAL: libc::c_int = libc::SIGUSR1;

pub const SIGNAL_INSTALL: Probe = Probe {
    name: "signal_install",
    summary: "sigaction, which installs a handler",
    ..Probe::latency(Class::Signals, open_signal_install)
};

#[expect(clippy::unnecessary_wraps, reason = "opening any probe may fail")]
fn open_signal_install(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let action = Action::new(counting_handler as *const () as libc::sighandler_t, 0);
    Ok(OpenProbe::latency(move |count| {
        timed(count, || action.install(SIGNAL))
    }))
}

/// Probe `signal_handle`. The time to send a signal is measured first and subtracted. For this, the
/// process ignores the signal.
pub const SIGNAL_HANDLE: Probe = Probe {
    name: "signal_handle",
    summary: "a signal to oneself and its handler, less the same kill of an ignored signal",
    ..Probe::latency(Class::Signals, open_signal_handle)
};

fn open_signal_handle(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    // SAFETY: takes no arguments and changes nothing.
    let process = unsafe { libc::getpid() };
    Action::new(libc::SIG_IGN, 0).install(SIGNAL)?;
    let mut send = move |count| timed(count, || send_signal(process, SIGNAL));
    let send_s = time_to_subtract(&mut send)?;
    Action::new(counting_handler as *const () as libc::sighandler_t, 0).install(SIGNAL)?;
    let probe = OpenProbe::latency(move |count| {
        let before = handled();
        let elapsed = send(count)?;
        check_handled(count, before)?;
        Ok(subtract(elapsed, count, send_s))
    });
    Ok(probe.with_fact("subtracted_s", send_s.to_string()))
}

pub const PROTECTION_FAULT: Probe = Probe {
    name: "protection_fault",
    summary: "a write to a read-only page, and a handler of SIGSEGV that steps over it",
    needs: "an x86-64 or AArch64 processor",
    ..Probe::latency(Class::Signals, open_protection_fault)
};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn open_protection_fault(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    Err(Problem::unavailable(
        "the handler can step over a write only on x86-64 and AArch64 processors",
    ))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn open_protection_fault(_: &ProbeOptions) -> Result<OpenProbe, Problem> {
    let page_bytes = page_size()?;
    let mapping = Mapping::new(page_bytes)?;
    mapping.touch_pages(page_bytes, 0..page_bytes);
    let start = mapping.start().as_ptr();
    // SAFETY: only this probe uses the mapping, and only its forbidden write writes to it.
    let result = unsafe { libc::mprotect(start.cast(), page_bytes, libc::PROT_READ) };
    check_result("mprotect", result, 0)?;
    let handler = step_over as *const () as libc::sighandler_t;
    Action::new(handler, libc::SA_SIGINFO).install(libc::SIGSEGV)?;
    Ok(OpenProbe::latency(move |count| {
        let address = mapping.start().as_ptr();
        let before = handled();
        let elapsed = timed(count, || {
            write_forbidden(address);
            Ok(())
        })?;
        check_handled(count, before)?;
        Ok(elapsed)
    }))
}

/// Writes to the page, by the instruction that [`step_over`] expects.
#[cfg(target_arch = "x86_64")]
#[inline]
fn write_forbidden(address: *mut u8) {
    // SAFETY: the page is read-only, so nothing is written.
    unsafe { std::arch::asm!("mov byte ptr [rax], 1", in("rax") address, options(nostack)) };
}

/// Writes to the page on `AArch64`.
#[cfg(target_arch = "aarch64")]
#[inline]
fn write_forbidden(address: *mut u8) {
    // SAFETY: the page is read-only, so nothing is written.
    unsafe { std::arch::asm!("strb wzr, [{}]", in(reg) address, options(nostack)) };
}

#[cfg(target_arch = "x86_64")]
extern "C" fn step_over(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    /// Machine code of [`write_forbidden`].
    const WRITE: [u8; 3] = [0xC6, 0x00, 0x01];
    // SAFETY: with SA_SIGINFO, the kernel passes the context in which the program continues.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let instruction = &mut registers[usize::try_from(libc::REG_RIP).unwrap_or_default()];
    // SAFETY: the program executed the instruction there.
    if unsafe { *(*instruction as *const [u8; 3]) } != WRITE {
        return restore_default();
    }
    *instruction += 3;
    count_signal();
}

#[cfg(target_arch = "aarch64")]
extern "C" fn step_over(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    const STRB_OF_ZERO: u32 = 0x3900_001F;
    const MASK_WITHOUT_ADDRESS: u32 = 0xFFFF_FC1F;
    // SAFETY: with SA_SIGINFO, the kernel passes the context in which the program continues.
    let instruction = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.pc };
    // SAFETY: the program executed the instruction there.
    if unsafe { *(*instruction as *const u32) } & MASK_WITHOUT_ADDRESS != STRB_OF_ZERO {
        return restore_default();
    }
    *instruction += 4;
    count_signal();
}

/// Restores the default action, so that a fault of the probe itself kills the probe.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn restore_default() {
    // SAFETY: the default action. The instruction then faults again.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
}
