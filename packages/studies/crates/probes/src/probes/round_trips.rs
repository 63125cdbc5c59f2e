//! `pipe`, `fifo`, `unix`, `udp`, `tcp`: send one byte to another process and receive its answer.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends, pipes, tcp_streams, two_way, udp_sockets, unix_streams};
use crate::child::exchange;
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions, timed};
use crate::scratch::Scratch;
use crate::system::{check_result, problem_of, wrong_result};

pub const PIPE: Probe = Probe {
    name: "pipe",
    summary: "one byte to another process and its answer back, through two pipes",
    ..Probe::latency(Class::Ipc, |options| open(options, pipes)).two_sided()
};

pub const FIFO: Probe = Probe {
    name: "fifo",
    summary: "one byte to another process and its answer back, through two named pipes",
    needs: "a folder whose file system has named pipes",
    ..Probe::latency(Class::Ipc, |options| open(options, || fifos(options))).two_sided()
};

/// Two named pipes. Their names are removed when both ends are open.
fn fifos(options: &ProbeOptions) -> Result<Ends, Problem> {
    let scratch = Scratch::new(options)?;
    let fifo = |name| open_fifo(&scratch.path().join(name));
    Ok(two_way(fifo("question")?, fifo("answer")?))
}

/// Creates a named pipe, and opens it for reading and for writing.
fn open_fifo(path: &Path) -> Result<(File, File), Problem> {
    let name = CString::new(path.as_os_str().as_bytes()).expect("the folder was made so");
    // SAFETY: the name ends with a null byte.
    check_result("mkfifo", unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0)?;
    let problem = problem_of("opening a named pipe");
    // Opening for reading waits for a writer, unless this flag is set.
    let reader = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(problem)?;
    let writer = File::options().write(true).open(path).map_err(problem)?;
    // SAFETY: passes numbers only; without a flag, reading waits for bytes.
    let result = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, 0) };
    check_result("fcntl(F_SETFL)", result, 0)?;
    Ok((reader, writer))
}

pub const UNIX: Probe = Probe {
    name: "unix",
    summary: "one byte to another process and its answer back, through AF_UNIX streams",
    ..Probe::latency(Class::Ipc, |options| open(options, unix_streams)).two_sided()
};

pub const UDP: Probe = Probe {
    name: "udp",
    summary: "one byte to another process and its answer back, through UDP on the loopback",
    needs: "a loopback interface",
    ..Probe::latency(Class::Ipc, |options| open(options, udp_sockets)).two_sided()
};

pub const TCP: Probe = Probe {
    name: "tcp",
    summary: "one byte to another process and its answer back, through TCP on the loopback",
    needs: "a loopback interface",
    ..Probe::latency(Class::Ipc, |options| open(options, tcp_streams)).two_sided()
};

/// Returns a probe whose operation is a round trip to a helper at the other end of a channel.
fn open(
    options: &ProbeOptions,
    ends: impl FnOnce() -> Result<Ends, Problem>,
) -> Result<OpenProbe, Problem> {
    let mut question = 0_u8;
    exchange(options, ends, answer, 0, move |end, count| {
        timed(count, || {
            question = question.wrapping_add(1);
            ask(end, question)
        })
    })
}

/// Makes one round trip, and checks the answer.
fn ask(end: &mut End, question: u8) -> Result<(), Problem> {
    end.send(question)?;
    let answer = end.receive()?;
    if answer == answer_to(question) {
        return Ok(());
    }
    Err(wrong_result("the other side", answer, answer_to(question)))
}

/// Does the work of the helper: answers every question.
fn answer(mut end: End) -> Result<(), Problem> {
    loop {
        let question = end.receive()?;
        end.send(answer_to(question))?;
    }
}

/// Returns the right answer to a question. The answer always differs from the question.
fn answer_to(question: u8) -> u8 {
    !question
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn every_question_is_answered_through_every_channel() {
        for ends in [pipes, unix_streams, udp_sockets, tcp_streams] {
            let (mut end, other) = ends().expect("a channel");
            let helper = thread::spawn(move || answer(other));
            for question in 0..=u8::MAX {
                ask(&mut end, question).expect("the right answer");
            }
            drop((end, helper));
        }
    }

    #[test]
    fn an_answer_equal_to_the_question_is_wrong() {
        let (mut end, mut other) = unix_streams().expect("a channel");
        let echo = thread::spawn(move || {
            let byte = other.receive()?;
            other.send(byte)
        });
        let problem = ask(&mut end, 7).expect_err("7 is a wrong answer");
        assert_eq!(problem.to_string(), "the other side gave 7 instead of 248");
        echo.join().expect("no panic").expect("sent");
    }

    #[test]
    fn a_missing_answer_is_a_problem() {
        let (mut end, other) = pipes().expect("a channel");
        drop(other);
        assert!(ask(&mut end, 1).is_err());
    }
}
