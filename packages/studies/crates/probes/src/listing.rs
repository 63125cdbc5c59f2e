//! Lists the probes: as JSON lines for programs, and as help texts for people.

use serde::Serialize;

use crate::probe::{Placement, Probe, Row};
use crate::probes::PROBES;

const USAGE: &str = "usage: equipoise-probe NAME [--batches N] [--batch-ms N] [--placement WHERE]
                            [--size BYTES] [--count N] [--folder FOLDER] [--check]
       equipoise-probe NAME --help
       equipoise-probe --list

Measures one operating system primitive in --batches N (default 11) of --batch-ms N milliseconds
(default 10). --check does one operation and reports nothing. Exit status: 0 for success; 69, with
one JSON line {\"unavailable\": REASON} on standard error, if the machine cannot run the probe; 1 if
a result was wrong; 2 if an option was wrong.
";

/// A line of `--list`.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    probe: &'static Probe,
    rows: Vec<ListedRow>,
}

#[derive(Serialize)]
struct ListedRow {
    name: String,
    options: Vec<String>,
}

/// Returns the output of `--list`: a JSON object for each probe.
pub fn json_lines() -> String {
    PROBES.iter().map(|probe| json_line(probe)).collect()
}

fn json_line(probe: &'static Probe) -> String {
    let listed_row = |row: &Row| ListedRow {
        name: format!("{}{}", probe.name, row.suffix),
        options: options_of(row),
    };
    let rows = probe.rows.iter().map(listed_row).collect();
    let line = serde_json::to_string(&Line { probe, rows }).expect("all keys are text");
    line + "\n"
}

/// Returns the options of the command line for a row.
pub fn options_of(row: &Row) -> Vec<String> {
    let placement = row.placement.map(|placement| placement.to_string());
    let size = row.size.map(|bytes| bytes.to_string());
    let count = row.count.map(|number| number.to_string());
    [
        ("--placement", placement),
        ("--size", size),
        ("--count", count),
    ]
    .into_iter()
    .filter_map(|(option, value)| Some([option.to_owned(), value?]))
    .flatten()
    .collect()
}

pub fn help() -> String {
    let line = |probe: &&Probe| format!("{:<18}{}\n", probe.name, probe.summary);
    format!("{USAGE}\n{}", PROBES.iter().map(line).collect::<String>())
}

pub fn help_of(probe: &Probe) -> String {
    let mut usage = vec![format!("usage: equipoise-probe {}", probe.name)];
    let mut details = Vec::new();
    if probe.placements.len() > 1 {
        let names: Vec<_> = probe.placements.iter().map(Placement::to_string).collect();
        usage.push(format!("[--placement {}]", names.join("|")));
    }
    for (option, parameter) in [("size", probe.size), ("count", probe.count)] {
        if let Some(parameter) = parameter {
            usage.push(format!("[--{option} N]"));
            let (summary, default) = (parameter.summary, parameter.default);
            details.push(format!("--{option}: {summary} (default {default})\n"));
        }
    }
    if !probe.needs.is_empty() {
        details.push(format!("Needs {}.\n", probe.needs));
    }
    let Probe {
        summary,
        class,
        metric,
        ..
    } = probe;
    let (usage, details) = (usage.join(" "), details.concat());
    format!("{usage}\n\n{summary} ({class}). Reports {metric}.\n{details}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_probes_or_rows_have_the_same_name() {
        let mut probes = HashSet::new();
        let mut rows = HashSet::new();
        for probe in PROBES {
            assert!(probes.insert(probe.name), "{}", probe.name);
            for row in probe.rows {
                let name = format!("{}{}", probe.name, row.suffix);
                assert!(rows.insert(name.clone()), "{name}");
            }
        }
    }

    #[test]
    fn a_row_lists_the_options_that_select_it() {
        let row = Row::named("_4k").of_size(4096).at(Placement::SameCpu);
        assert_eq!(
            options_of(&row),
            ["--placement", "same_cpu", "--size", "4096"]
        );
    }
}
