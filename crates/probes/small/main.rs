//! A static program with next to no memory, which forks as often as it is told.
//!
//! Without arguments it ends at once, with a status that no shell and no failure gives.
//! `small fork BYTES` first makes BYTES of memory its own; `small exec PATH` and `small sh PATH`
//! have each child execute PATH, directly or through `/bin/sh -c`. It then reads numbers of
//! children (8 bytes, native order) from standard input, and answers each with 24 bytes: the
//! nanoseconds that they took one after the other, what went wrong, and the detail.

#![no_std]
#![no_main]

mod kernel;

use core::ptr::{null, null_mut};

use kernel::call;

/// How a child ends that did what it should.
const DONE: usize = 242;

/// What went wrong, as `src/small.rs` reads it.
const NOTHING: u64 = 0;
const FORK: u64 = 1;
const WAIT: u64 = 2;
const STATUS: u64 = 3;
const MEMORY: u64 = 4;

const SIGCHLD: usize = 17;
const CLOCK_MONOTONIC: usize = 1;
const PAGE: usize = 4096;

/// What each child does.
enum Work {
    End,
    Execute(*const u8, [*const u8; 4]),
}

/// A problem and its detail.
type Wrong = (u64, u64);

/// Where the program begins, with its stack as execve(2) leaves it.
#[unsafe(no_mangle)]
unsafe extern "C" fn begin(stack: *const usize) -> ! {
    // SAFETY: the kernel puts the number of arguments there, then the arguments, a null, and
    // the environment.
    let (count, arguments, environment) = unsafe {
        let count = *stack;
        let arguments = stack.add(1).cast::<*const u8>();
        (count, arguments, arguments.add(count + 1))
    };
    if count < 3 {
        end(DONE);
    }
    // SAFETY: there are at least three arguments, each with at least its final null byte.
    let (word, detail) = unsafe { (**arguments.add(1), *arguments.add(2)) };
    let sh = c"/bin/sh".to_bytes_with_nul().as_ptr();
    let sh_arguments = [
        c"sh".to_bytes_with_nul().as_ptr(),
        c"-c".to_bytes_with_nul().as_ptr(),
        detail,
        null(),
    ];
    let held = match word {
        b'f' => hold(number(detail)),
        _ => Ok(()),
    };
    let work = match word {
        b'e' => Work::Execute(detail, [detail, null(), null(), null()]),
        b's' => Work::Execute(sh, sh_arguments),
        _ => Work::End,
    };
    while let Some(children) = next_request() {
        let started = nanoseconds();
        let done = held.and_then(|()| fork_each(children, &work, environment));
        let took = nanoseconds() - started;
        let (what, detail) = done.err().unwrap_or((NOTHING, 0));
        answer([took, what, detail]);
    }
    end(0);
}

fn fork_each(children: u64, work: &Work, environment: *const *const u8) -> Result<(), Wrong> {
    for _ in 0..children {
        // SAFETY: a child with a copy of this memory, as fork(2) makes it.
        let child = unsafe { call(kernel::CLONE, [SIGCHLD, 0, 0, 0, 0, 0]) };
        if child == 0 {
            do_it(work, environment);
        }
        if child < 0 {
            return Err((FORK, child.unsigned_abs() as u64));
        }
        let mut status = 0_i32;
        // SAFETY: the status can be written.
        let ended = unsafe {
            let status = &raw mut status as usize;
            call(kernel::WAIT4, [child.unsigned_abs(), status, 0, 0, 0, 0])
        };
        if ended != child {
            return Err((WAIT, ended.unsigned_abs() as u64));
        }
        if status != (DONE as i32) << 8 {
            return Err((STATUS, status as u64));
        }
    }
    Ok(())
}

fn do_it(work: &Work, environment: *const *const u8) -> ! {
    if let Work::Execute(path, arguments) = work {
        // SAFETY: strings that end with a null byte, in arrays that end with a null pointer.
        unsafe {
            let arguments = arguments.as_ptr() as usize;
            let path = *path as usize;
            call(
                kernel::EXECVE,
                [path, arguments, environment as usize, 0, 0, 0],
            );
        }
        // It does not come back if it worked.
        end(1);
    }
    end(DONE);
}

/// Makes so many bytes of memory its own, page by page of the smallest kind.
fn hold(bytes: usize) -> Result<(), Wrong> {
    const PR_SET_THP_DISABLE: usize = 41;
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    const NO_FILE: usize = usize::MAX;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: passes numbers only. A kernel without huge pages knows none to refuse.
    unsafe { call(kernel::PRCTL, [PR_SET_THP_DISABLE, 1, 0, 0, 0, 0]) };
    // SAFETY: a new mapping at no particular address.
    let start = unsafe {
        let nowhere = null_mut::<u8>() as usize;
        call(
            kernel::MMAP,
            [nowhere, bytes, READ_WRITE, PRIVATE_ANONYMOUS, NO_FILE, 0],
        )
    };
    if start < 0 && start > -4096 {
        return Err((MEMORY, start.unsigned_abs() as u64));
    }
    let mut offset = 0;
    while offset < bytes {
        // SAFETY: within the mapping.
        unsafe { (start as *mut u8).add(offset).write_volatile(1) };
        offset += PAGE;
    }
    Ok(())
}

fn number(digits: *const u8) -> usize {
    let mut value = 0_usize;
    let mut at = digits;
    loop {
        // SAFETY: the text ends with a null byte, and nothing beyond it is read.
        let digit = unsafe { *at };
        if !digit.is_ascii_digit() {
            return value;
        }
        value = value.wrapping_mul(10).wrapping_add((digit - b'0') as usize);
        // SAFETY: this byte was not the null byte.
        at = unsafe { at.add(1) };
    }
}

fn next_request() -> Option<u64> {
    let mut children = 0_u64;
    // SAFETY: eight bytes can be written there.
    let read = unsafe { call(kernel::READ, [0, &raw mut children as usize, 8, 0, 0, 0]) };
    (read == 8).then_some(children)
}

fn answer(numbers: [u64; 3]) {
    // SAFETY: 24 bytes can be read there.
    let written = unsafe { call(kernel::WRITE, [1, numbers.as_ptr() as usize, 24, 0, 0, 0]) };
    if written != 24 {
        end(1);
    }
}

fn nanoseconds() -> u64 {
    let mut now = [0_u64; 2];
    // SAFETY: a timespec is two numbers of eight bytes on the processors that this is for.
    unsafe {
        let now = now.as_mut_ptr() as usize;
        call(kernel::CLOCK_GETTIME, [CLOCK_MONOTONIC, now, 0, 0, 0, 0]);
    }
    now[0] * 1_000_000_000 + now[1]
}

fn end(status: usize) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { call(kernel::EXIT_GROUP, [status, 0, 0, 0, 0, 0]) };
    }
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    end(1)
}
