//! Runs work on several threads and returns the results in order.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Function of the amounts of finished and of all work, from any thread; false stops the work.
pub type Progress<'a> = dyn Fn(usize, usize) -> bool + Sync + 'a;

/// Returns the number of threads to use; 0 stands for the number of cores.
pub fn thread_count(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        _ => threads,
    }
}

/// Calls `work` for the indices below `total`, `chunk_size` at a time, and returns the results in
/// order; `None` if `progress` stops the work. `threads` is 0 for one thread on each core.
pub fn parallel_map<T: Send>(
    threads: usize,
    total: usize,
    chunk_size: usize,
    progress: &Progress<'_>,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Option<Vec<T>> {
    let threads = thread_count(threads);
    let next = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let results = Mutex::new(Vec::with_capacity(total.div_ceil(chunk_size)));
    let work_on_chunks = || {
        loop {
            let first = next.fetch_add(chunk_size, Ordering::Relaxed);
            if first >= total || stopped.load(Ordering::Relaxed) {
                break;
            }
            let end = (first + chunk_size).min(total);
            let result = work(first..end);
            results
                .lock()
                .expect("no thread panics while it holds the lock")
                .push((first, result));
            if !progress(end, total) {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(total.div_ceil(chunk_size)) {
            scope.spawn(work_on_chunks);
        }
        work_on_chunks();
    });
    if stopped.into_inner() {
        return None;
    }
    let mut results = results
        .into_inner()
        .expect("no thread panics while it holds the lock");
    results.sort_unstable_by_key(|&(first, _)| first);
    Some(results.into_iter().map(|(_, result)| result).collect())
}
