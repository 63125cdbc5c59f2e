//! Reads the records of `perf_event_open(2)`, as far as this program uses them.

/// Reads values one after another from the bytes of a record.
#[derive(Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    /// Reads all bytes except the last `length` bytes.
    pub fn but_last(&mut self, length: usize) -> Option<&'a [u8]> {
        self.bytes(self.0.len().checked_sub(length)?)
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// Reads up to the first NUL; `None` if there is no NUL.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|byte| *byte == 0)?;
        self.bytes(length)
    }
}

/// The content of a record after its header.
#[derive(Clone, Copy)]
pub enum Record<'a> {
    /// A sample. Its fields depend on the sample type and have the order of `perf_event_open(2)`.
    Sample(Reader<'a>),
    Mapping(Mapping<'a>),
    /// A thread got a new name, at an exec or at another time (`PERF_RECORD_COMM`).
    ThreadName {
        process: u32,
        thread: u32,
        at_exec: bool,
    },
    Fork(Task),
    Exit(Task),
    /// Number of records that the kernel dropped.
    Lost(u64),
    /// A thread begins or stops to run on a processor.
    Switch {
        thread: u32,
        kind: SwitchKind,
    },
    Other,
}

/// A file that a process (an id) maps into its memory.
#[derive(Clone, Copy)]
pub struct Mapping<'a> {
    pub process: u32,
    pub address: u64,
    pub length: u64,
    pub file_offset: u64,
    pub path: &'a [u8],
}

/// The ids of a thread that begins or ends, and of the thread that made it.
#[derive(Clone, Copy)]
pub struct Task {
    pub process: u32,
    pub parent_process: u32,
    pub thread: u32,
    pub parent_thread: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchKind {
    /// The thread begins to run.
    In,
    /// The thread stops, because it waits.
    Out,
    /// The thread stops although it is ready to run, because another thread runs.
    Preempted,
}

/// Types of records (`PERF_RECORD_*`).
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
pub const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const SWITCH: u32 = 14;

/// Bits of the header's field `misc` (`PERF_RECORD_MISC_*`).
const COMM_AT_EXEC: u16 = 1 << 13;
const SWITCH_OUT: u16 = 1 << 13;
const PREEMPTED: u16 = 1 << 14;

impl<'a> Record<'a> {
    /// Reads a record; `None` if it is too short for its type.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let record_type = reader.u32()?;
        let misc = u16::from_ne_bytes(reader.bytes(2)?.try_into().ok()?);
        let _size = reader.bytes(2)?;
        Some(match record_type {
            SAMPLE => Self::Sample(reader),
            LOST => {
                let _event = reader.u64()?;
                Self::Lost(reader.u64()?)
            }
            COMM => Self::ThreadName {
                process: reader.u32()?,
                thread: reader.u32()?,
                at_exec: misc & COMM_AT_EXEC != 0,
            },
            FORK | EXIT => {
                let task = Task {
                    process: reader.u32()?,
                    parent_process: reader.u32()?,
                    thread: reader.u32()?,
                    parent_thread: reader.u32()?,
                };
                if record_type == FORK {
                    Self::Fork(task)
                } else {
                    Self::Exit(task)
                }
            }
            MMAP2 => {
                let (process, _thread) = (reader.u32()?, reader.u32()?);
                let (address, length, file_offset) = (reader.u64()?, reader.u64()?, reader.u64()?);
                // Device, inode and its generation, protection, flags.
                reader.bytes(4 + 4 + 8 + 8 + 4 + 4)?;
                let path = reader.text()?;
                Self::Mapping(Mapping {
                    process,
                    address,
                    length,
                    file_offset,
                    path,
                })
            }
            SWITCH => {
                let (_process, thread) = (reader.u32()?, reader.u32()?);
                let kind = match (misc & SWITCH_OUT, misc & PREEMPTED) {
                    (0, _) => SwitchKind::In,
                    (_, 0) => SwitchKind::Out,
                    _ => SwitchKind::Preempted,
                };
                Self::Switch { thread, kind }
            }
            _ => Self::Other,
        })
    }
}

/// Returns the time of a record: its last word, except in a sample.
pub fn time_of(bytes: &[u8]) -> Option<u64> {
    /// In the samples that this program requests, the time follows the process and the thread.
    const TIME_OFFSET: usize = 16;
    let record_type = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    if record_type == SAMPLE {
        let time = bytes.get(TIME_OFFSET..TIME_OFFSET + 8)?;
        return Some(u64::from_ne_bytes(time.try_into().ok()?));
    }
    let end = bytes.len().checked_sub(8)?;
    Some(u64::from_ne_bytes(bytes.get(end..)?.try_into().ok()?))
}
