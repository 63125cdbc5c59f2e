//! Progress of long work, reported to Python.

use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Time between two looks for signals: the longest that Ctrl-C waits.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(20);

/// Passes progress on to Python. An exception in Python, also Ctrl-C, stops the work.
pub struct ProgressReporter {
    callback: Option<Py<PyAny>>,
    error: Mutex<Option<PyErr>>,
    caller: ThreadId,
    last_look: Mutex<Instant>,
}

impl ProgressReporter {
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Self {
            callback,
            error: Mutex::new(None),
            caller: std::thread::current().id(),
            last_look: Mutex::new(Instant::now()),
        }
    }

    /// Reports how much is done of how much; returns whether to go on.
    pub fn report(&self, done: usize, of: usize) -> bool {
        let called = match &self.callback {
            Some(callback) => Python::attach(|py| callback.call1(py, (done, of)).map(drop)),
            None => Ok(()),
        };
        let Err(error) = called.and_then(|()| self.check_signals()) else {
            return true;
        };
        if let Ok(mut first) = self.error.lock() {
            first.get_or_insert(error);
        }
        false
    }

    /// Python handles signals only in the thread that called us.
    fn check_signals(&self) -> PyResult<()> {
        if std::thread::current().id() != self.caller {
            return Ok(());
        }
        let Ok(mut last_look) = self.last_look.lock() else {
            return Ok(());
        };
        if last_look.elapsed() < BETWEEN_SIGNALS {
            return Ok(());
        }
        *last_look = Instant::now();
        // The method path does not compile for every lifetime.
        #[allow(clippy::redundant_closure_for_method_calls)]
        Python::attach(|py| py.check_signals())
    }

    /// Returns the result of the work, or the error that stopped it.
    pub fn finish<T>(self, result: Option<T>) -> PyResult<T> {
        match (self.error.into_inner(), result) {
            (Ok(Some(error)), _) => Err(error),
            (_, Some(result)) => Ok(result),
            _ => Err(PyRuntimeError::new_err("stopped for no reason")),
        }
    }
}
