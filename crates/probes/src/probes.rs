//! The probes by name: a new one is its own file and its lines here.

mod context_switch;
mod epoll_tcp;
mod exec;
mod fcntl_lock;
mod fifo;
mod file_create;
mod file_delete;
mod file_reread;
mod fork;
mod futex;
mod io_uring_nop;
mod io_uring_read_byte;
mod memory_copy;
mod memory_latency;
mod memory_read;
mod memory_write;
mod mmap;
mod mmap_reread;
mod null_call;
mod null_call_int80;
mod open_close;
mod page_fault;
mod pipe;
mod pipe_bandwidth;
mod poll_tcp;
mod protection_fault;
mod read_byte;
mod select_tcp;
mod sh;
mod signal_handle;
mod signal_install;
mod sleep_50us;
mod stat;
mod tcp;
mod tcp_bandwidth;
mod tcp_connect;
mod thread;
mod threads_many;
mod udp;
mod unix;
mod unix_bandwidth;
mod unix_connect;
mod write_byte;

use crate::probe::Probe;

/// Every probe there is, in the order of the tables.
pub const PROBES: &[&Probe] = &[
    &fork::PROBE,
    &exec::PROBE,
    &sh::PROBE,
    &thread::PROBE,
    &threads_many::PROBE,
    &futex::PROBE,
    &null_call::PROBE,
    &null_call_int80::PROBE,
    &read_byte::PROBE,
    &write_byte::PROBE,
    &stat::PROBE,
    &open_close::PROBE,
    &select_tcp::PROBE,
    &poll_tcp::PROBE,
    &epoll_tcp::PROBE,
    &io_uring_nop::PROBE,
    &io_uring_read_byte::PROBE,
    &signal_install::PROBE,
    &signal_handle::PROBE,
    &protection_fault::PROBE,
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
    &page_fault::PROBE,
    &mmap::PROBE,
    &memory_latency::PROBE,
    &memory_read::PROBE,
    &memory_write::PROBE,
    &memory_copy::PROBE,
    &file_create::PROBE,
    &file_delete::PROBE,
    &file_reread::PROBE,
    &mmap_reread::PROBE,
    &fcntl_lock::PROBE,
    &sleep_50us::PROBE,
];
