//! The fork server: a small static program, like one in C, that creates child processes on request.
//!
//! - Without arguments it ends at once with the exit status `DONE`.
//! - `fork_server fork BYTES` first allocates BYTES of memory. Its children end at once.
//! - `fork_server exec PATH`: each child executes PATH.
//! - `fork_server sh PATH`: each child executes PATH by `/bin/sh -c`.
//!
//! With arguments, the program reads requests from standard input. A request is a number of children
//! (8 bytes, native order), which are created one after the other. The answer is 24 bytes: the
//! nanoseconds for all children, an error code, and the detail of the error.

#![no_std]
#![no_main]

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::{null, null_mut};

/// Exit status of a child that succeeded. No shell and no failure returns it.
const DONE: c_int = 242;

/// Error codes, which `src/probes/processes.rs` reads.
const NO_ERROR: u64 = 0;
const FORK_FAILED: u64 = 1;
const WAIT_FAILED: u64 = 2;
const WRONG_STATUS: u64 = 3;
const NO_MEMORY: u64 = 4;
const CLOCK_MONOTONIC: c_int = 1;
const PAGE_BYTES: usize = 4096;

#[repr(C)]
struct Time {
    seconds: c_long,
    nanoseconds: c_long,
}

unsafe extern "C" {
    static environ: *const *const c_char;
    fn fork() -> c_int;
    fn waitpid(child: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn execve(
        path: *const c_char,
        arguments: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int;
    fn _exit(status: c_int) -> !;
    fn read(descriptor: c_int, bytes: *mut c_void, count: usize) -> isize;
    fn write(descriptor: c_int, bytes: *const c_void, count: usize) -> isize;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    fn strtoul(digits: *const c_char, end: *mut *mut c_char, base: c_int) -> usize;
    fn malloc(bytes: usize) -> *mut c_void;
    fn prctl(option: c_int, ...) -> c_int;
    fn __errno_location() -> *mut c_int;
}

/// What each child does.
enum Work {
    End,
    Execute(*const c_char, [*const c_char; 4]),
}

/// An error code, and its detail: an error number or a wait status.
type Failure = (u64, c_int);

#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    if count < 3 {
        return DONE;
    }
    // SAFETY: there are at least three arguments, each a string.
    let (mode, detail) = unsafe { (CStr::from_ptr(*arguments.add(1)), *arguments.add(2)) };
    let execute = |path, arguments| (Ok(()), Work::Execute(path, arguments));
    let (memory, work) = match mode.to_bytes() {
        b"exec" => execute(detail, [detail, null(), null(), null()]),
        b"sh" => {
            let (shell, option) = (c"sh".as_ptr(), c"-c".as_ptr());
            execute(c"/bin/sh".as_ptr(), [shell, option, detail, null()])
        }
        // SAFETY: a string of digits.
        _ => (
            allocate(unsafe { strtoul(detail, null_mut(), 10) }),
            Work::End,
        ),
    };
    while let Some(children) = next_request() {
        let started = nanoseconds();
        let result = memory.and_then(|()| create_children(children, &work));
        let elapsed = nanoseconds() - started;
        let (code, detail) = result.err().unwrap_or((NO_ERROR, 0));
        if !answer([elapsed, code, u64::from(detail.unsigned_abs())]) {
            return 1;
        }
    }
    0
}

/// Creates children one after the other, and checks that each succeeds.
fn create_children(children: u64, work: &Work) -> Result<(), Failure> {
    for _ in 0..children {
        // SAFETY: this process has one thread.
        let child = unsafe { fork() };
        if child == 0 {
            do_work(work);
        }
        if child < 0 {
            return Err((FORK_FAILED, errno()));
        }
        let mut status = 0;
        // SAFETY: the status can be written.
        if unsafe { waitpid(child, &raw mut status, 0) } != child {
            return Err((WAIT_FAILED, errno()));
        }
        // The second byte of a wait status is the exit status.
        if status != DONE << 8 {
            return Err((WRONG_STATUS, status));
        }
    }
    Ok(())
}

fn do_work(work: &Work) -> ! {
    if let Work::Execute(path, arguments) = work {
        // SAFETY: strings, and arrays of them that end with a null pointer.
        unsafe { execve(*path, arguments.as_ptr(), environ) };
        // execve returns only if it fails.
        // SAFETY: ends the process.
        unsafe { _exit(1) };
    }
    // SAFETY: ends the process.
    unsafe { _exit(DONE) }
}

/// Allocates memory and touches every page, without huge pages.
fn allocate(bytes: usize) -> Result<(), Failure> {
    const PR_SET_THP_DISABLE: c_int = 41;
    const UNUSED: c_long = 0;
    const DISABLE: c_long = 1;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: passes numbers only. If a kernel refuses this call, it has no huge pages.
    unsafe { prctl(PR_SET_THP_DISABLE, DISABLE, UNUSED, UNUSED, UNUSED) };
    // SAFETY: the block is never freed.
    let start = unsafe { malloc(bytes) };
    if start.is_null() {
        return Err((NO_MEMORY, errno()));
    }
    for offset in (0..bytes).step_by(PAGE_BYTES) {
        // SAFETY: within the block.
        unsafe { start.cast::<u8>().add(offset).write_volatile(1) };
    }
    Ok(())
}

/// Reads a number of children; `None` if there are no more requests.
fn next_request() -> Option<u64> {
    let mut children = 0_u64;
    // SAFETY: eight bytes can be written there.
    let bytes = unsafe { read(0, (&raw mut children).cast(), 8) };
    (bytes == 8).then_some(children)
}

/// Writes an answer, and returns whether that succeeded.
fn answer(numbers: [u64; 3]) -> bool {
    // SAFETY: the array is valid for reading.
    let bytes = unsafe { write(1, numbers.as_ptr().cast(), size_of_val(&numbers)) };
    bytes.unsigned_abs() == size_of_val(&numbers)
}

fn nanoseconds() -> u64 {
    let mut now = Time {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the time can be written.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut now) };
    now.seconds.unsigned_abs() as u64 * 1_000_000_000 + now.nanoseconds.unsigned_abs() as u64
}

fn errno() -> c_int {
    // SAFETY: the C library gives this thread a valid location.
    unsafe { *__errno_location() }
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { _exit(1) }
}
