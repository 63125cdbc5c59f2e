//! The probes by name: a new one is its own file and its lines here.

mod context_switch;
mod fifo;
mod file_reread;
mod io_uring_nop;
mod io_uring_read_byte;
mod memory_copy;
mod memory_latency;
mod memory_read;
mod memory_write;
mod mmap_reread;
mod null_call;
mod pipe;
mod pipe_bandwidth;
mod read_byte;
mod tcp;
mod tcp_bandwidth;
mod tcp_connect;
mod udp;
mod unix;
mod unix_bandwidth;
mod unix_connect;
mod write_byte;

use crate::probe::Probe;

/// Every probe there is, in the order of the tables.
#[rustfmt::skip]
pub const PROBES: &[&Probe] = &[
    &null_call::PROBE,
    &read_byte::PROBE,
    &write_byte::PROBE,
    &io_uring_nop::PROBE,
    &io_uring_read_byte::PROBE,
    &pipe::PROBE,
    &fifo::PROBE,
    &unix::PROBE,
    &udp::PROBE,
    &tcp::PROBE,
    &unix_connect::PROBE,
    &tcp_connect::PROBE,
    &pipe_bandwidth::PROBE,
    &unix_bandwidth::PROBE,
    &tcp_bandwidth::PROBE,
    &context_switch::PROBE,
    &memory_latency::PROBE,
    &memory_read::PROBE,
    &memory_write::PROBE,
    &memory_copy::PROBE,
    &file_reread::PROBE,
    &mmap_reread::PROBE,
];
