//! The list of the probes: as JSON lines for programs, as text for people.

use std::fmt::Write;

use equipoise_reporting::metrics::escaped;

use crate::probe::{Parameter, Probe, Row};
use crate::probes::PROBES;

const USAGE: &str = "usage: equipoise-probe NAME [--batches N] [--batch-ms N] [--placement WHERE]
                            [--size BYTES] [--count N] [--folder FOLDER] [--check]
       equipoise-probe NAME --help
       equipoise-probe --list

Measures one operating system primitive in N batches (default 11) of about so many milliseconds
(default 10), after finding out how many operations a batch holds. --check does one operation and
reports nothing. Exit status: 0; 69 and one JSON line {\"unavailable\": REASON} on standard error
where the machine forbids it; 1 if a result was wrong; 2 for bad options.
";

/// Returns what `--list` prints: a JSON object for each probe.
pub fn json_lines() -> String {
    PROBES.iter().map(|probe| json_line(probe)).collect()
}

fn json_line(probe: &Probe) -> String {
    let placements: Vec<_> = probe
        .placements
        .iter()
        .map(|placement| quoted(placement.name()))
        .collect();
    let row = |row| json_row(probe.name, row);
    let rows: Vec<_> = probe.rows.iter().map(row).collect();
    format!(
        "{{\"name\": {}, \"class\": {}, \"words\": {}, \"metric\": {}, \"placements\": [{}], \
         \"size\": {}, \"count\": {}, \"needs\": {}, \"rows\": [{}]}}\n",
        quoted(probe.name),
        quoted(probe.class.name()),
        quoted(probe.summary),
        quoted(probe.metric.name()),
        placements.join(", "),
        json_parameter(probe.size),
        json_parameter(probe.count),
        quoted(probe.needs),
        rows.join(", ")
    )
}

fn json_parameter(parameter: Option<Parameter>) -> String {
    parameter.map_or_else(
        || "null".to_owned(),
        |parameter| {
            format!(
                "{{\"words\": {}, \"default\": {}, \"least\": {}, \"most\": {}}}",
                quoted(parameter.summary),
                parameter.default,
                parameter.minimum,
                parameter.maximum
            )
        },
    )
}

fn json_row(probe: &str, row: &Row) -> String {
    let options: Vec<_> = options_of(row).iter().map(|word| quoted(word)).collect();
    format!(
        "{{\"name\": {}, \"options\": [{}]}}",
        quoted(&format!("{probe}{}", row.suffix)),
        options.join(", ")
    )
}

/// Returns the options of the command line for a row.
pub fn options_of(row: &Row) -> Vec<String> {
    let placement = row
        .placement
        .map(|placement| ("--placement", placement.name().to_owned()));
    let size = row.size.map(|bytes| ("--size", bytes.to_string()));
    let count = row.count.map(|number| ("--count", number.to_string()));
    [placement, size, count]
        .into_iter()
        .flatten()
        .flat_map(|(option, value)| [option.to_owned(), value])
        .collect()
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// Returns what `--help` prints.
pub fn help() -> String {
    let mut text = format!("{USAGE}\n");
    for probe in PROBES {
        writeln!(text, "{:<18}{}", probe.name, probe.summary).expect("a string can be written");
    }
    text
}

/// Returns what `NAME --help` prints.
pub fn help_of(probe: &Probe) -> String {
    let mut text = format!("usage: equipoise-probe {}", probe.name);
    let placements: Vec<_> = probe
        .placements
        .iter()
        .map(|placement| placement.name())
        .collect();
    let mut explained = String::new();
    if placements.len() > 1 {
        let names = placements.join("|");
        write!(text, " [--placement {names}]").expect("a string can be written");
    }
    for (option, taken) in [("size", probe.size), ("count", probe.count)] {
        if let Some(parameter) = taken {
            write!(text, " [--{option} N]").expect("a string can be written");
            writeln!(
                explained,
                "--{option}: {} (default {})",
                parameter.summary, parameter.default
            )
            .expect("a string can be written");
        }
    }
    let needs = if probe.needs.is_empty() {
        String::new()
    } else {
        format!("Needs {}.\n", probe.needs)
    };
    format!(
        "{text}\n\n{} ({}). Reports {}.\n{explained}{needs}",
        probe.summary,
        probe.class.name(),
        probe.metric.name()
    )
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
    fn a_row_lists_the_options_that_ask_for_it() {
        use crate::probe::Placement;
        let row = Row::named("_4k").of_size(4096).at(Placement::SameCpu);
        assert_eq!(
            json_row("mmap", &row),
            "{\"name\": \"mmap_4k\", \"options\": [\"--placement\", \"same_cpu\", \"--size\", \"4096\"]}"
        );
    }
}
