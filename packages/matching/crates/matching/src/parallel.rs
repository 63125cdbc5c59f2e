//! Threads that share one list of work; the results have its order.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Takes how much is done and of how much, and returns whether to go on; any thread may call it.
pub type Progress<'a> = dyn Fn(usize, usize) -> bool + Sync + 'a;

/// Returns the number of threads: for 0, the number of cores.
pub fn how_many(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        _ => threads,
    }
}

/// The results of `work` for 0, …, `total` − 1 in pieces of `at_once`, by the given number of
/// threads, or one for each core if that is 0. `None` if `progress` stops the work.
pub fn in_parallel<T: Send>(
    threads: usize,
    total: usize,
    at_once: usize,
    progress: &Progress<'_>,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Option<Vec<T>> {
    let threads = how_many(threads);
    let next = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let answers = Mutex::new(Vec::with_capacity(total.div_ceil(at_once)));
    let run = || {
        loop {
            let first = next.fetch_add(at_once, Ordering::Relaxed);
            if first >= total || stopped.load(Ordering::Relaxed) {
                break;
            }
            let end = (first + at_once).min(total);
            let answer = work(first..end);
            answers
                .lock()
                .expect("no thread panics while it holds the lock")
                .push((first, answer));
            if !progress(end, total) {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(total.div_ceil(at_once)) {
            scope.spawn(run);
        }
        run();
    });
    if stopped.into_inner() {
        return None;
    }
    let mut answers = answers
        .into_inner()
        .expect("no thread panics while it holds the lock");
    answers.sort_unstable_by_key(|&(first, _)| first);
    Some(answers.into_iter().map(|(_, answer)| answer).collect())
}
