//! Reports the progress of long work to Python, and stops the work when Python raises an error.

use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Time between two checks for signals, which is the longest delay of Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

/// Calls a Python function with the progress. An exception in Python, or Ctrl-C, stops the work.
pub struct ProgressReporter {
    callback: Option<Py<PyAny>>,
    /// The first error, which stops the work.
    error: Mutex<Option<PyErr>>,
    /// The thread that called this crate.
    caller: ThreadId,
    /// Time of the last check for signals.
    last_check: Mutex<Instant>,
}

impl ProgressReporter {
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Self {
            callback,
            error: Mutex::new(None),
            caller: std::thread::current().id(),
            last_check: Mutex::new(Instant::now()),
        }
    }

    /// Reports the amounts of finished and of all work; returns whether to continue.
    pub fn report(&self, done: usize, total: usize) -> bool {
        let result = match &self.callback {
            Some(callback) => Python::attach(|py| callback.call1(py, (done, total)).map(drop)),
            None => Ok(()),
        };
        let Err(error) = result.and_then(|()| self.check_signals()) else {
            return true;
        };
        if let Ok(mut first) = self.error.lock() {
            first.get_or_insert(error);
        }
        false
    }

    /// Lets Python handle signals, which works only in the thread that called this crate.
    fn check_signals(&self) -> PyResult<()> {
        if std::thread::current().id() != self.caller {
            return Ok(());
        }
        let Ok(mut last_check) = self.last_check.lock() else {
            return Ok(());
        };
        if last_check.elapsed() < SIGNAL_INTERVAL {
            return Ok(());
        }
        *last_check = Instant::now();
        // The path of the method does not compile in place of the closure.
        #[allow(clippy::redundant_closure_for_method_calls)]
        Python::attach(|py| py.check_signals())
    }

    /// Returns the result of the work, or the error that stopped it.
    pub fn finish<T>(self, result: Option<T>) -> PyResult<T> {
        match (self.error.into_inner(), result) {
            (Ok(Some(error)), _) => Err(error),
            (_, Some(result)) => Ok(result),
            _ => Err(PyRuntimeError::new_err("the work stopped without an error")),
        }
    }
}
