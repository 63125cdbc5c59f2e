//! A workload's own metrics, through the same door as every other program's.
//!
//! `EQUIPOISE_METRICS` names a file to which JSON lines are appended; without it the line goes
//! to standard output, for whoever runs a workload by hand.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;

use crate::problem::Problem;

const DOOR: &str = "EQUIPOISE_METRICS";

/// What a workload gives back.
#[derive(Debug)]
pub enum Outcome {
    /// Help was asked for: no work was done.
    Help(&'static str),
    /// The work was done, at this cost.
    Measured(Cost),
}

/// One metric of the trial, of which less is better.
#[derive(Debug)]
pub struct Cost {
    /// Its name.
    pub metric: &'static str,
    /// Its value, finite.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}

impl Cost {
    /// The JSON line; names and units are plain words, so nothing needs escaping.
    fn line(&self) -> String {
        format!(
            "{{\"metric\": \"{}\", \"value\": {}, \"unit\": \"{}\", \"better\": \"lower\"}}\n",
            self.metric, self.value, self.unit
        )
    }
}

impl Outcome {
    /// Reports the metric and gives back what belongs on standard output.
    ///
    /// # Errors
    /// If the file that `EQUIPOISE_METRICS` names cannot be appended to.
    pub fn report(&self) -> Result<String, Problem> {
        match (self, std::env::var_os(DOOR)) {
            (Self::Help(text), _) => Ok((*text).to_owned()),
            (Self::Measured(cost), None) => Ok(cost.line()),
            (Self::Measured(cost), Some(file)) => append(&file, &cost.line()),
        }
    }
}

fn append(file: &OsString, line: &str) -> Result<String, Problem> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .and_then(|mut opened| opened.write_all(line.as_bytes()))
        .map(|()| String::new())
        .map_err(|error| {
            Problem::failure(format!(
                "cannot append to {}, which {DOOR} names: {error}",
                file.to_string_lossy()
            ))
        })
}
