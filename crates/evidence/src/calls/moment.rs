//! What either method reports, one thing at a time and in order for each thread.

/// One thing that one thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// By the monotonic clock.
    pub ns: u64,
    pub process: u32,
    pub thread: u32,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It entered the system call of that number.
    Entered { number: u64, arguments: [u64; 6] },
    /// Its call returned this: a negative error number if it failed.
    Left { result: i64 },
    /// It made a thread, of another process or of its own.
    Forked { process: u32, thread: u32 },
    /// It has become another program.
    Executed,
    /// It has ended.
    Ended,
}
