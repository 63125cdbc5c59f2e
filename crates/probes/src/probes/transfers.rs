//! Many bytes from another process, through whatever carries bytes.

use std::time::{Duration, Instant};

use equipoise_reporting::problem::Problem;

use crate::channel::{End, Ends, pipes, tcp_streams, unix_streams};
use crate::child::Helper;
use crate::cpus::{current_cpu, hold, sides};
use crate::probe::{Class, OpenProbe, Operation, Placement, Probe, ProbeOptions, Row};
use crate::system::wrong;

/// Probe `pipe_bandwidth`.
pub const PIPE_BANDWIDTH: Probe = Probe {
    name: "pipe_bandwidth",
    class: Class::Ipc,
    summary: "bytes from another process through a pipe, 64 KiB at a time",
    placements: Placement::TWO_SIDES,
    rows: &[
        Row::plain("pipe_bandwidth_same_cpu").at(Placement::SameCpu),
        Row::plain("pipe_bandwidth_across_cpus").at(Placement::AcrossCpus),
    ],
    ..Probe::bandwidth(|options| open(options, pipes))
};

/// Probe `unix_bandwidth`.
pub const UNIX_BANDWIDTH: Probe = Probe {
    name: "unix_bandwidth",
    class: Class::Ipc,
    summary: "bytes from another process through an AF_UNIX stream, 64 KiB at a time",
    placements: Placement::TWO_SIDES,
    rows: &[
        Row::plain("unix_bandwidth_same_cpu").at(Placement::SameCpu),
        Row::plain("unix_bandwidth_across_cpus").at(Placement::AcrossCpus),
    ],
    ..Probe::bandwidth(|options| open(options, unix_streams))
};

/// Probe `tcp_bandwidth`.
pub const TCP_BANDWIDTH: Probe = Probe {
    name: "tcp_bandwidth",
    class: Class::Ipc,
    summary: "bytes from another process through TCP on the loopback, 64 KiB at a time",
    placements: Placement::TWO_SIDES,
    needs: "a loopback interface",
    rows: &[
        Row::plain("tcp_bandwidth_same_cpu").at(Placement::SameCpu),
        Row::plain("tcp_bandwidth_across_cpus").at(Placement::AcrossCpus),
    ],
    ..Probe::bandwidth(|options| open(options, tcp_streams))
};

/// Bytes that are written and read at a time.
pub const CHUNK: usize = 64 << 10;

/// Opens a channel and starts a helper that sends as many chunks as it is asked for. One
/// operation is a chunk: a batch is the question, the chunks, and no wait for anything else.
pub fn open(
    options: &ProbeOptions,
    ends: impl FnOnce() -> Result<Ends, Problem>,
) -> Result<OpenProbe, Problem> {
    let sides = sides(options.placement)?;
    hold(sides.here)?;
    let (end, other) = ends()?;
    let helper = Helper::start(sides.there, move || serve(other))?;
    let helper_cpu = helper.cpu().to_string();
    let transfers = Transfers {
        _helper: helper,
        end,
        room: vec![0; CHUNK],
    };
    Ok(OpenProbe::bandwidth(CHUNK as u64, transfers)
        .with_fact("cpu", current_cpu()?.to_string())
        .with_fact("helper_cpu", helper_cpu))
}

/// This side of the channel. The helper is dropped first: were the channel closed before, the
/// helper would end too early.
struct Transfers {
    _helper: Helper,
    end: End,
    room: Vec<u8>,
}

impl Operation for Transfers {
    fn repeat(&mut self, chunks: u64) -> Result<Duration, Problem> {
        fetch(&mut self.end, &mut self.room, chunks)
    }
}

/// Requests chunks and receives them; returns the time from the request to the last byte.
fn fetch(end: &mut End, room: &mut [u8], chunks: u64) -> Result<Duration, Problem> {
    let started = Instant::now();
    end.send_number(chunks)?;
    let received = receive(end, room, chunks * CHUNK as u64)?;
    let took = started.elapsed();
    // It follows the last byte: that there was neither one more nor one less.
    let sent = end.receive_number()?;
    if sent != received {
        return Err(wrong("the other side's count of bytes", sent, received));
    }
    Ok(took)
}

/// Receives exactly `bytes` bytes.
fn receive(end: &mut End, room: &mut [u8], bytes: u64) -> Result<u64, Problem> {
    let mut received = 0;
    while received < bytes {
        let left = usize::try_from(bytes - received).unwrap_or(usize::MAX);
        let most = left.min(room.len());
        received += end.receive_some(&mut room[..most])? as u64;
    }
    Ok(received)
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
    fn exactly_the_bytes_that_are_asked_for_come_through_every_channel() {
        for ends in [pipes, unix_streams, tcp_streams] {
            let (mut end, other) = ends().expect("a channel");
            let helper = thread::spawn(move || serve(other));
            let mut room = vec![0; CHUNK];
            for chunks in [1, 2, 9] {
                fetch(&mut end, &mut room, chunks).expect("as many bytes as were asked for");
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
