//! The list of all probes. Each file of the folder `probes` defines one or more probes.

mod connects;
mod context_switch;
mod fcntl_lock;
mod futex;
mod io_uring_calls;
mod memory_bandwidth;
mod memory_latency;
mod new_files;
mod page_faults;
mod processes;
mod reread;
mod round_trips;
mod signals;
mod sleep_50us;
mod system_calls;
mod threads;
mod transfers;
mod watching;

use crate::probe::Probe;

/// Every probe, in the order of the tables.
pub const PROBES: &[&Probe] = &[
    &processes::FORK,
    &processes::EXEC,
    &processes::SH,
    &threads::THREAD,
    &threads::THREADS_MANY,
    &futex::FUTEX,
    &system_calls::NULL_CALL,
    &system_calls::NULL_CALL_INT80,
    &system_calls::READ_BYTE,
    &system_calls::WRITE_BYTE,
    &system_calls::STAT,
    &system_calls::OPEN_CLOSE,
    &watching::SELECT_TCP,
    &watching::POLL_TCP,
    &watching::EPOLL_TCP,
    &io_uring_calls::IO_URING_NOP,
    &io_uring_calls::IO_URING_READ_BYTE,
    &signals::SIGNAL_INSTALL,
    &signals::SIGNAL_HANDLE,
    &signals::PROTECTION_FAULT,
    &round_trips::PIPE,
    &round_trips::FIFO,
    &round_trips::UNIX,
    &round_trips::UDP,
    &round_trips::TCP,
    &connects::UNIX_CONNECT,
    &connects::TCP_CONNECT,
    &transfers::PIPE_BANDWIDTH,
    &transfers::UNIX_BANDWIDTH,
    &transfers::TCP_BANDWIDTH,
    &context_switch::CONTEXT_SWITCH,
    &page_faults::PAGE_FAULT,
    &page_faults::MMAP,
    &memory_latency::MEMORY_LATENCY,
    &memory_bandwidth::MEMORY_READ,
    &memory_bandwidth::MEMORY_WRITE,
    &memory_bandwidth::MEMORY_COPY,
    &new_files::FILE_CREATE,
    &new_files::FILE_DELETE,
    &reread::FILE_REREAD,
    &reread::MMAP_REREAD,
    &fcntl_lock::FCNTL_LOCK,
    &sleep_50us::SLEEP_50US,
];
