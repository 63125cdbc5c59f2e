//! `pipe_bandwidth`, `unix_bandwidth`, `tcp_bandwidth`: receive many bytes from another process.

use std::time::{Duration, Instant};

use equipoise_reporting::arguments::to_usize;
use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends, pipes, tcp_streams, unix_streams};
use crate::child::exchange;
use crate::probe::{Class, OpenProbe, Probe, ProbeOptions};
use crate::system::wrong_result;

pub const PIPE_BANDWIDTH: Probe = Probe {
    name: "pipe_bandwidth",
    summary: "bytes from another process through a pipe, 64 KiB at a time",
    ..Probe::bandwidth(Class::Ipc, |options| open(options, pipes)).two_sided()
};

pub const UNIX_BANDWIDTH: Probe = Probe {
    name: "unix_bandwidth",
    summary: "bytes from another process through an AF_UNIX stream, 64 KiB at a time",
    ..Probe::bandwidth(Class::Ipc, |options| open(options, unix_streams)).two_sided()
};

pub const TCP_BANDWIDTH: Probe = Probe {
    name: "tcp_bandwidth",
    summary: "bytes from another process through TCP on the loopback, 64 KiB at a time",
    needs: "a loopback interface",
    ..Probe::bandwidth(Class::Ipc, |options| open(options, tcp_streams)).two_sided()
};

/// Number of bytes in each write, and maximum number in each read.
const CHUNK: usize = 64 << 10;

/// Returns a probe with a helper, which sends the number of chunks that this process requests. One
/// operation is a chunk. A batch is one request and its chunks.
fn open(
    options: &ProbeOptions,
    ends: impl FnOnce() -> Result<Ends, Problem>,
) -> Result<OpenProbe, Problem> {
    let mut buffer = vec![0; CHUNK];
    exchange(options, ends, serve, CHUNK as u64, move |end, chunks| {
        fetch(end, &mut buffer, chunks)
    })
}

/// Requests chunks and receives them; returns the time from the request to the last byte.
fn fetch(end: &mut End, buffer: &mut [u8], chunks: u64) -> Result<Duration, Problem> {
    let started = Instant::now();
    end.send_number(chunks)?;
    let bytes = chunks * CHUNK as u64;
    let mut received = 0;
    while received < bytes {
        let limit = to_usize(bytes - received).min(buffer.len());
        received += end.receive_some(&mut buffer[..limit])? as u64;
    }
    let elapsed = started.elapsed();
    // The helper's count comes after the last byte, so a lost or extra byte is noticed.
    let sent = end.receive_number()?;
    if sent != bytes {
        return Err(wrong_result("the other side's count of bytes", sent, bytes));
    }
    Ok(elapsed)
}

/// Does the work of the helper: sends the requested chunks, then the number of their bytes.
fn serve(mut end: End) -> Result<(), Problem> {
    let chunk = vec![1; CHUNK];
    loop {
        let chunks = end.receive_number()?;
        for _ in 0..chunks {
            end.send_all(&chunk)?;
        }
        end.send_number(chunks * CHUNK as u64)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn exactly_the_requested_bytes_arrive_through_every_channel() {
        for ends in [pipes, unix_streams, tcp_streams] {
            let (mut end, other) = ends().expect("a channel");
            let helper = thread::spawn(move || serve(other));
            let mut buffer = vec![0; CHUNK];
            for chunks in [1, 2, 9] {
                fetch(&mut end, &mut buffer, chunks).expect("the requested bytes");
            }
            drop((end, helper));
        }
    }

    #[test]
    fn a_byte_too_few_or_too_many_is_noticed() {
        for sent in [CHUNK - 1, CHUNK + 1] {
            let (mut end, mut other) = unix_streams().expect("a channel");
            let helper = thread::spawn(move || {
                other.receive_number()?;
                other.send_all(&vec![1; sent])?;
                other.send_number(CHUNK as u64)
            });
            assert!(fetch(&mut end, &mut vec![0; CHUNK], 1).is_err());
            drop(end);
            helper.join().expect("no panic").expect("sent");
        }
    }
}
