//! The recording of this process: its file, and the table of each thread.

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use equipoise_interpose::errno;
use equipoise_interpose::process::variable;
use equipoise_kernel::clock::monotonic_ns;

use crate::clock;
use crate::file::{
    CLASSES, FILE_BYTES, Header, LIFETIMES, MAGIC, MAPS_OFFSET, NO_ROOM_BYTES, PAGE, Row, SAMPLES,
    SAMPLES_OFFSET, Sample, TABLE_BYTES, TABLES, Table,
};
use crate::maps;
use crate::samples;
use crate::system;
use crate::thread::Thread;

/// The folder that gets a file for each process.
const FOLDER: &CStr = c"EQUIPOISE_ALLOCATIONS";
const PATH_BYTES: usize = 4096;
/// Most programs that a process may execute with a file each.
const PROGRAMS: u32 = 1000;
/// Both clocks are read twice, so far apart at least.
const CALIBRATION_NS: u64 = 20_000;

/// State of the process. The kernel wipes its page in a forked child, however it was forked.
#[repr(C)]
struct Process {
    /// Key that threads compare theirs with; 0 until it is decided whether the process records.
    key: AtomicU64,
    starting: AtomicBool,
    header: AtomicPtr<Header>,
    start_ticks: AtomicU64,
    /// Whether a thread writes the maps of the process to the file.
    keeps_maps: AtomicBool,
    /// A bit for each table that has room on the disk. Other tables must not even be read, because
    /// a file system in memory allocates pages for reads, too.
    tables_with_room: [AtomicU64; TABLES / BITS],
}

const BITS: usize = u64::BITS as usize;
const _: () = assert!(size_of::<Process>() <= PAGE);

static NOWHERE: Process = Process {
    key: AtomicU64::new(0),
    starting: AtomicBool::new(false),
    header: AtomicPtr::new(ptr::null_mut()),
    start_ticks: AtomicU64::new(0),
    keeps_maps: AtomicBool::new(false),
    tables_with_room: [const { AtomicU64::new(0) }; TABLES / BITS],
};
static PROCESS: AtomicPtr<Process> = AtomicPtr::new((&raw const NOWHERE).cast_mut());
/// The recording of the process or, after a fork, still that of its parent.
static LAST_HEADER: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());
/// Whether the environment can be read: it cannot before the C library has started.
static STARTED: AtomicBool = AtomicBool::new(false);
static KEYS: AtomicU64 = AtomicU64::new(2);

#[inline]
fn process() -> &'static Process {
    // SAFETY: it is NOWHERE or a page that is never given back.
    unsafe { &*PROCESS.load(Ordering::Acquire) }
}

/// Whether the thread's table is that of this process.
#[inline]
pub fn is_attached(thread: &Thread) -> bool {
    thread.key.get() == process().key.load(Ordering::Relaxed)
}

/// The file of this process, if it has one.
pub fn header() -> Option<&'static Header> {
    // SAFETY: it is null or a mapping that is never given back.
    unsafe { process().header.load(Ordering::Acquire).as_ref() }
}

/// Returns the ticks at which this process began to record.
pub fn start_ticks() -> u64 {
    process().start_ticks.load(Ordering::Relaxed)
}

/// Gives the thread a table of this process; without one, `thread.table` is null.
#[cold]
pub fn attach(thread: &Thread) {
    if thread.busy.replace(true) {
        return;
    }
    errno::preserved(|| {
        thread.table.set(ptr::null());
        if let Some(key) = begin() {
            thread.key.set(key);
            if let Some(header) = header() {
                thread.table.set(table_for(header, system::thread()));
                samples::start(thread, header);
            }
        }
    });
    thread.busy.set(false);
}

/// Writes the maps of this process to its file, unless another thread does so now.
pub fn keep_maps(header: &Header) {
    maps::keep(header, &process().keeps_maps);
}

/// The C library has started, and with it this library.
pub fn library_started() {
    STARTED.store(true, Ordering::Relaxed);
}

/// The process leaves by `exit`.
pub fn ended() {
    if let Some(header) = header() {
        errno::preserved(|| keep_maps(header));
        header.ended.set(1);
    }
}

/// The key of this process, after its recording was started or refused; `None` if it is too early
/// to decide.
fn begin() -> Option<u64> {
    let process = wiped_page()?;
    loop {
        match process.key.load(Ordering::Acquire) {
            0 => {}
            key => return Some(key),
        }
        let folder = variable(FOLDER);
        if folder.is_none() && !STARTED.load(Ordering::Relaxed) {
            return None;
        }
        if process.starting.swap(true, Ordering::AcqRel) {
            std::hint::spin_loop();
            continue;
        }
        process.start_ticks.store(clock::ticks(), Ordering::Relaxed);
        let made = folder.map_or(ptr::null_mut(), make_file);
        process.header.store(made, Ordering::Release);
        let parents = LAST_HEADER.load(Ordering::Relaxed);
        if made.is_null() && !parents.is_null() {
            // SAFETY: a shared mapping of the parent's, which a fork keeps.
            unsafe { &*parents }.children_without_file.add_shared(1);
        }
        LAST_HEADER.store(made, Ordering::Relaxed);
        // Even, and so never that of a thread that is new.
        let key = KEYS.fetch_add(2, Ordering::Relaxed);
        process.key.store(key, Ordering::Release);
    }
}

fn wiped_page() -> Option<&'static Process> {
    let nowhere = (&raw const NOWHERE).cast_mut();
    if PROCESS.load(Ordering::Acquire) == nowhere {
        let page = system::reserve(PAGE);
        if page.is_null() {
            return None;
        }
        // Without it a child would go on in its parent's file.
        let wiped = system::advise(page, PAGE, libc::MADV_WIPEONFORK);
        let fresh = page.cast::<Process>();
        let exchanged =
            PROCESS.compare_exchange(nowhere, fresh, Ordering::AcqRel, Ordering::Acquire);
        if !wiped || exchanged.is_err() {
            if exchanged.is_ok() {
                PROCESS.store(nowhere, Ordering::Release);
            }
            // SAFETY: no other thread has begun to use the page.
            unsafe { system::unmap(page, PAGE) };
            if !wiped {
                return None;
            }
        }
    }
    Some(process())
}

/// `FOLDER/PID-N.allocations`, mapped; null if that cannot be had.
fn make_file(folder: &CStr) -> *mut Header {
    let mut path = [MaybeUninit::<c_char>::uninit(); PATH_BYTES];
    let start = path.as_mut_ptr().cast::<c_char>();
    let process = system::process();
    for program in 0..PROGRAMS {
        // SAFETY: writes at most PATH_BYTES, and a NUL at their end.
        let length = unsafe {
            libc::snprintf(
                start,
                PATH_BYTES,
                c"%s/%u-%u.allocations".as_ptr(),
                folder.as_ptr(),
                process,
                program,
            )
        };
        if usize::try_from(length).is_ok_and(|length| length >= PATH_BYTES) {
            return ptr::null_mut();
        }
        // SAFETY: snprintf has ended the string.
        let file = unsafe { CStr::from_ptr(start) };
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        let Some(descriptor) = system::open(file, flags) else {
            if errno::get() == libc::EEXIST {
                continue;
            }
            return ptr::null_mut();
        };
        let header = map_with_header(descriptor);
        system::close(descriptor);
        // SAFETY: a mapping of that length, or null.
        if let Some(header) = unsafe { header.as_ref() } {
            describe(header);
        }
        return header;
    }
    ptr::null_mut()
}

/// The whole file, mapped, with room for its header; null if that cannot be had. Where the disk is
/// full, the length of the file shows it.
fn map_with_header(descriptor: c_int) -> *mut Header {
    if !system::lengthen(descriptor, FILE_BYTES) {
        return ptr::null_mut();
    }
    let memory = system::map_file(descriptor, FILE_BYTES);
    // SAFETY: a fresh mapping of a fresh file, which is zero.
    if !memory.is_null() && !unsafe { system::take_room(memory, PAGE) } {
        // SAFETY: no other thread has seen it.
        unsafe { system::unmap(memory, FILE_BYTES) };
        system::shorten(descriptor, NO_ROOM_BYTES);
        return ptr::null_mut();
    }
    memory.cast()
}

fn describe(header: &Header) {
    let (ticks, ns) = clock::both();
    header.first_ticks.set(ticks);
    header.first_ns.set(ns);
    header.table_offset.set(PAGE as u64);
    header.table_bytes.set(TABLE_BYTES as u64);
    header.tables.set(TABLES as u64);
    header.classes.set(CLASSES as u64);
    header.lifetimes.set(LIFETIMES as u64);
    header.row_words.set((size_of::<Row>() / 8) as u64);
    header.maps_offset.set(MAPS_OFFSET as u64);
    header.samples_offset.set(SAMPLES_OFFSET as u64);
    header.sample_bytes.set(size_of::<Sample>() as u64);
    header.samples.set(SAMPLES as u64);
    header.process.set(u64::from(system::process()));
    header.parent.set(u64::from(system::parent()));
    header.steady_clock.set(u64::from(clock::is_steady()));
    header.machine.set(samples::MACHINE);
    keep_maps(header);
    while monotonic_ns() - ns < CALIBRATION_NS {
        std::hint::spin_loop();
    }
    let (ticks, ns) = clock::both();
    header.second_ticks.set(ticks);
    header.second_ns.set(ns);
    // Last: a file without it was not finished.
    header.magic.set(MAGIC);
}

/// A table without a living owner; null if all have owners, or there is no room for a new one.
fn table_for(header: &'static Header, thread: u32) -> *const Table {
    let owner = u64::from(thread);
    let used = usize::try_from(header.tables_used.get()).unwrap_or(TABLES);
    for index in (0..used.min(TABLES)).filter(|index| has_room(*index)) {
        let table = table(header, index);
        let before = table.owner.get();
        let ended = u32::try_from(before).is_ok_and(system::has_ended);
        if (before == owner || ended) && table.owner.exchange(before, owner) {
            return table;
        }
    }
    let index = usize::try_from(header.tables_used.add_shared(1)).unwrap_or(TABLES);
    if index >= TABLES {
        return ptr::null();
    }
    // SAFETY: the table is inside the mapping, and no other call gets the same number; no thread
    // reads it before its bit is set.
    if !unsafe { system::take_room(place_of_table(header, index).cast(), TABLE_BYTES) } {
        header.tables_without_room.add_shared(1);
        return ptr::null();
    }
    let table = table(header, index);
    table.owner.set(owner);
    process().tables_with_room[index / BITS].fetch_or(1 << (index % BITS), Ordering::Release);
    table
}

fn has_room(index: usize) -> bool {
    let bits = process().tables_with_room[index / BITS].load(Ordering::Acquire);
    bits >> (index % BITS) & 1 == 1
}

fn place_of_table(header: &Header, index: usize) -> *mut Table {
    header.place(PAGE + index * TABLE_BYTES)
}

/// A table that has room.
fn table(header: &'static Header, index: usize) -> &'static Table {
    // SAFETY: `index` is below TABLES, so the table is inside the mapping, which is never given
    // back, and is zero where nothing was written. Threads share it by atomic numbers alone.
    unsafe { &*place_of_table(header, index) }
}
