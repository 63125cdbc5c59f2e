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
    CLASS_COUNT, FILE_BYTES, FULL_DISK_FILE_BYTES, Header, LIFETIME_CLASS_COUNT, MAGIC,
    MAPS_OFFSET, MAX_SAMPLES, MAX_TABLES, PAGE_BYTES, Row, SAMPLES_OFFSET, Sample, TABLE_BYTES,
    Table,
};
use crate::maps;
use crate::samples;
use crate::system;
use crate::thread::Thread;

/// Environment variable with the folder for the files; without it nothing is recorded.
const FOLDER_VARIABLE: &CStr = c"EQUIPOISE_ALLOCATIONS";
const MAX_PATH_BYTES: usize = 4096;
/// Maximum number of programs that a process executes in turn, each with its own file.
const MAX_PROGRAMS: u32 = 1000;
/// Minimum time between the first and the second reading of both clocks.
const CALIBRATION_NS: u64 = 20_000;

/// State of the process, on a page that the kernel sets to zero in every forked child.
#[repr(C)]
struct ProcessState {
    /// Key of this process, which its threads store; 0 before the recording was started or refused.
    key: AtomicU64,
    /// Whether a thread is starting the recording, or has started it.
    starting: AtomicBool,
    /// Start of the mapped file; null without a file.
    header: AtomicPtr<Header>,
    start_ticks: AtomicU64,
    /// Whether a thread is writing the maps of the process to the file.
    writes_maps: AtomicBool,
    /// A bit for each table that has disk space. Other tables are not even read: in a file system
    /// in memory, reading allocates pages.
    tables_with_space: [AtomicU64; MAX_TABLES / BITS],
}

/// Number of bits in an element of `tables_with_space`.
const BITS: usize = u64::BITS as usize;
const _: () = assert!(size_of::<ProcessState>() <= PAGE_BYTES);

/// State of a process without a state page.
static NO_PROCESS: ProcessState = ProcessState {
    key: AtomicU64::new(0),
    starting: AtomicBool::new(false),
    header: AtomicPtr::new(ptr::null_mut()),
    start_ticks: AtomicU64::new(0),
    writes_maps: AtomicBool::new(false),
    tables_with_space: [const { AtomicU64::new(0) }; MAX_TABLES / BITS],
};
/// The state page of this process; `NO_PROCESS` before the kernel has given a page.
static PROCESS: AtomicPtr<ProcessState> = AtomicPtr::new((&raw const NO_PROCESS).cast_mut());
/// File of the process. A forked child has the parent's file until it creates a file of its own.
static INHERITED_HEADER: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());
/// Whether the C library has started, so that the environment can be read.
static C_LIBRARY_STARTED: AtomicBool = AtomicBool::new(false);
/// Key of the next process; a forked child continues the keys of its parent.
static NEXT_KEY: AtomicU64 = AtomicU64::new(2);

#[inline]
fn process_state() -> &'static ProcessState {
    // SAFETY: it is NO_PROCESS or a page that is never unmapped.
    unsafe { &*PROCESS.load(Ordering::Acquire) }
}

/// Whether the thread's table belongs to this process (and not to the parent before a fork).
#[inline]
pub fn is_attached(thread: &Thread) -> bool {
    thread.key.get() == process_state().key.load(Ordering::Relaxed)
}

pub fn header() -> Option<&'static Header> {
    // SAFETY: it is null or a mapping that is never unmapped.
    unsafe { process_state().header.load(Ordering::Acquire).as_ref() }
}

/// Returns the ticks at which this process began to record.
pub fn start_ticks() -> u64 {
    process_state().start_ticks.load(Ordering::Relaxed)
}

/// Gives the thread a table of this process; sets `thread.table` to null if there is none.
#[cold]
pub fn attach(thread: &Thread) {
    if thread.is_in_library.replace(true) {
        return;
    }
    errno::preserved(|| {
        thread.table.set(ptr::null());
        if let Some(key) = start_recording() {
            thread.key.set(key);
            if let Some(header) = header() {
                thread.table.set(claim_table(header, system::thread_id()));
                samples::start(thread, header);
            }
        }
    });
    thread.is_in_library.set(false);
}

/// Writes the maps of this process to its file, unless another thread is doing so.
pub fn write_maps(header: &Header) {
    maps::write_to_file(header, &process_state().writes_maps);
}

pub fn note_start_of_c_library() {
    C_LIBRARY_STARTED.store(true, Ordering::Relaxed);
}

/// Completes the file when the process ends by `exit`.
pub fn finish() {
    if let Some(header) = header() {
        errno::preserved(|| write_maps(header));
        header.ended.set(1);
    }
}

/// Starts the recording, unless it was started or refused before; returns the key of the process.
/// `None` if the environment cannot be read yet.
fn start_recording() -> Option<u64> {
    let state = state_page()?;
    loop {
        match state.key.load(Ordering::Acquire) {
            0 => {}
            key => return Some(key),
        }
        let folder = variable(FOLDER_VARIABLE);
        if folder.is_none() && !C_LIBRARY_STARTED.load(Ordering::Relaxed) {
            return None;
        }
        if state.starting.swap(true, Ordering::AcqRel) {
            std::hint::spin_loop();
            continue;
        }
        state.start_ticks.store(clock::ticks(), Ordering::Relaxed);
        let header = folder.map_or(ptr::null_mut(), create_file);
        state.header.store(header, Ordering::Release);
        let parent = INHERITED_HEADER.load(Ordering::Relaxed);
        if header.is_null() && !parent.is_null() {
            // SAFETY: a shared mapping of the parent, which a fork keeps.
            unsafe { &*parent }.children_without_file.add_shared(1);
        }
        INHERITED_HEADER.store(header, Ordering::Relaxed);
        // Keys are even, and a new thread has key 1, so they differ.
        let key = NEXT_KEY.fetch_add(2, Ordering::Relaxed);
        state.key.store(key, Ordering::Release);
    }
}

/// Returns a new state page. The kernel sets it to zero in every forked child.
fn state_page() -> Option<&'static ProcessState> {
    let no_process = (&raw const NO_PROCESS).cast_mut();
    if PROCESS.load(Ordering::Acquire) == no_process {
        let page = system::reserve(PAGE_BYTES);
        if page.is_null() {
            return None;
        }
        // Without this advice, a child would continue to write to its parent's file.
        let is_wiped = system::advise(page, PAGE_BYTES, libc::MADV_WIPEONFORK);
        let state = page.cast::<ProcessState>();
        let exchanged =
            PROCESS.compare_exchange(no_process, state, Ordering::AcqRel, Ordering::Acquire);
        if !is_wiped || exchanged.is_err() {
            if exchanged.is_ok() {
                PROCESS.store(no_process, Ordering::Release);
            }
            // SAFETY: no other thread has begun to use the page.
            unsafe { system::unmap(page, PAGE_BYTES) };
            if !is_wiped {
                return None;
            }
        }
    }
    Some(process_state())
}

/// Creates and maps the file `FOLDER/PID-N.allocations`; null if that fails.
fn create_file(folder: &CStr) -> *mut Header {
    let mut path = [MaybeUninit::<c_char>::uninit(); MAX_PATH_BYTES];
    let start = path.as_mut_ptr().cast::<c_char>();
    let pid = system::process_id();
    for program in 0..MAX_PROGRAMS {
        // SAFETY: writes at most MAX_PATH_BYTES, the last of which is NUL.
        let length = unsafe {
            libc::snprintf(
                start,
                MAX_PATH_BYTES,
                c"%s/%u-%u.allocations".as_ptr(),
                folder.as_ptr(),
                pid,
                program,
            )
        };
        if usize::try_from(length).is_ok_and(|length| length >= MAX_PATH_BYTES) {
            return ptr::null_mut();
        }
        // SAFETY: snprintf has written NUL at the end of the string.
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
            fill_header(header);
        }
        return header;
    }
    ptr::null_mut()
}

/// Maps the file, with disk space for its header; null if that fails. If the disk is full, the
/// length of the file is set to `FULL_DISK_FILE_BYTES`.
fn map_with_header(descriptor: c_int) -> *mut Header {
    if !system::lengthen(descriptor, FILE_BYTES) {
        return ptr::null_mut();
    }
    let memory = system::map_file(descriptor, FILE_BYTES);
    // SAFETY: a new mapping of a new file, which is zero.
    if !memory.is_null() && !unsafe { system::allocate_disk_space(memory, PAGE_BYTES) } {
        // SAFETY: no other thread has seen the mapping.
        unsafe { system::unmap(memory, FILE_BYTES) };
        system::shorten(descriptor, FULL_DISK_FILE_BYTES);
        return ptr::null_mut();
    }
    memory.cast()
}

fn fill_header(header: &Header) {
    let (ticks, ns) = clock::ticks_and_ns();
    header.first_ticks.set(ticks);
    header.first_ns.set(ns);
    header.table_offset.set(PAGE_BYTES as u64);
    header.table_bytes.set(TABLE_BYTES as u64);
    header.max_tables.set(MAX_TABLES as u64);
    header.classes.set(CLASS_COUNT as u64);
    header.lifetimes.set(LIFETIME_CLASS_COUNT as u64);
    header.row_words.set((size_of::<Row>() / 8) as u64);
    header.maps_offset.set(MAPS_OFFSET as u64);
    header.samples_offset.set(SAMPLES_OFFSET as u64);
    header.sample_bytes.set(size_of::<Sample>() as u64);
    header.max_samples.set(MAX_SAMPLES as u64);
    header.process_id.set(u64::from(system::process_id()));
    header.parent_id.set(u64::from(system::parent_id()));
    header.steady_clock.set(u64::from(clock::is_steady()));
    header.machine.set(samples::MACHINE);
    write_maps(header);
    while monotonic_ns() - ns < CALIBRATION_NS {
        std::hint::spin_loop();
    }
    let (ticks, ns) = clock::ticks_and_ns();
    header.second_ticks.set(ticks);
    header.second_ns.set(ns);
    // This is set last: a file without the magic number is incomplete.
    header.magic.set(MAGIC);
}

/// Claims a table for a thread: a new table, or a table whose owner has ended. Null without a
/// table.
fn claim_table(header: &'static Header, thread: u32) -> *const Table {
    let owner = u64::from(thread);
    let used = usize::try_from(header.tables_used.get()).unwrap_or(MAX_TABLES);
    for index in (0..used.min(MAX_TABLES)).filter(|index| has_disk_space(*index)) {
        let table = table_at(header, index);
        let owner_before = table.owner.get();
        let has_ended = u32::try_from(owner_before).is_ok_and(system::thread_has_ended);
        if (owner_before == owner || has_ended) && table.owner.exchange(owner_before, owner) {
            return table;
        }
    }
    let index = usize::try_from(header.tables_used.add_shared(1)).unwrap_or(MAX_TABLES);
    if index >= MAX_TABLES {
        return ptr::null();
    }
    // SAFETY: the table is inside the mapping. No other call gets the index, and no thread reads
    // the table before its bit is set.
    if !unsafe { system::allocate_disk_space(table_pointer(header, index).cast(), TABLE_BYTES) } {
        header.tables_without_space.add_shared(1);
        return ptr::null();
    }
    let table = table_at(header, index);
    table.owner.set(owner);
    process_state().tables_with_space[index / BITS]
        .fetch_or(1 << (index % BITS), Ordering::Release);
    table
}

fn has_disk_space(index: usize) -> bool {
    let bits = process_state().tables_with_space[index / BITS].load(Ordering::Acquire);
    bits >> (index % BITS) & 1 == 1
}

fn table_pointer(header: &Header, index: usize) -> *mut Table {
    header.pointer_at(PAGE_BYTES + index * TABLE_BYTES)
}

fn table_at(header: &'static Header, index: usize) -> &'static Table {
    // SAFETY: `index` is below MAX_TABLES, so the table is inside the mapping, which stays mapped.
    // All numbers that threads share are atomic.
    unsafe { &*table_pointer(header, index) }
}
