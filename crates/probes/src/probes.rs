//! The probes by name: a new one is its own file and its lines here.

mod epoll_tcp;
mod exec;
mod fcntl_lock;
mod file_create;
mod file_delete;
mod fork;
mod futex;
mod mmap;
mod null_call;
mod null_call_int80;
mod open_close;
mod page_fault;
mod poll_tcp;
mod protection_fault;
mod read_byte;
mod select_tcp;
mod sh;
mod signal_handle;
mod signal_install;
mod sleep_50us;
mod stat;
mod thread;
mod threads_many;
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
    &signal_install::PROBE,
    &signal_handle::PROBE,
    &protection_fault::PROBE,
    &page_fault::PROBE,
    &mmap::PROBE,
    &file_create::PROBE,
    &file_delete::PROBE,
    &fcntl_lock::PROBE,
    &sleep_50us::PROBE,
];
