//! Draws a differential flame graph: widths show the slower condition, colours the difference.

use std::collections::BTreeMap;
use std::io;

use inferno::flamegraph::{self, Options};

use equipoise_reporting::problem::Problem;

use crate::pictures::{Condition, Conditions, Stack};

/// Smallest width of a frame in per cent of the picture; narrower frames are left out.
const MIN_WIDTH_PERCENT: f64 = 0.1;
const WIDTH_PIXELS: usize = 1200;

/// Draws the flame graph as SVG. If the slower condition has no stack, the picture says so.
pub fn draw(conditions: &Conditions, writer: impl io::Write) -> Result<(), Problem> {
    let lines = folded_lines(conditions);
    let mut options = flame_graph_options(conditions);
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), writer)
        .map_err(Problem::system("the flame graph"))
}

fn flame_graph_options(conditions: &Conditions) -> Options<'static> {
    let [faster, slower] = conditions.by_speed();
    let mut options = Options::default();
    options.title = printable_line(&format!("{} compared with {}", slower.name, faster.name));
    options.subtitle = Some(printable_line(&format!(
        "width: processor time of {}; red: more time in the function itself than {}; blue: less",
        slower.name, faster.name
    )));
    "µs".clone_into(&mut options.count_name);
    options.image_width = Some(WIDTH_PIXELS);
    options.min_width = MIN_WIDTH_PERCENT;
    options
}

/// Returns a line for each stack: names, microseconds of the faster and of the slower condition.
fn folded_lines(conditions: &Conditions) -> Vec<String> {
    let mut stacks: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (index, condition) in conditions.by_speed().into_iter().enumerate() {
        for stack in &condition.stacks {
            let microseconds_of_both = stacks.entry(frame_names(condition, stack)).or_default();
            microseconds_of_both[index] += microseconds(stack.seconds);
        }
    }
    let line = |(names, [faster, slower]): (String, [u64; 2])| format!("{names} {faster} {slower}");
    stacks.into_iter().map(line).collect()
}

fn frame_names(condition: &Condition, stack: &Stack) -> String {
    if stack.frames.is_empty() {
        return "(no stack)".to_owned();
    }
    let names = stack.frames.iter().map(|index| {
        let name = printable_line(&condition.frames[*index].name);
        // In this format, `;` separates two frames and `#` begins a comment.
        name.replace(';', ",").replace('#', "\u{ff03}")
    });
    names.collect::<Vec<_>>().join(";")
}

/// Replaces the characters that XML cannot contain; an empty text becomes `(no name)`.
fn printable_line(text: &str) -> String {
    let forbidden =
        |character: char| character.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&character);
    let text = text.replace(forbidden, "\u{fffd}");
    match text.trim() {
        "" => "(no name)".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a run are neither negative nor 500,000 years"
)]
fn microseconds(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::Side;
    use crate::stacks::folded::{Frame, Kind};

    fn condition(name: &str, stacks: &[(&[&str], f64)]) -> Condition {
        let mut frames = Vec::new();
        let stacks = stacks.iter().map(|(names, seconds)| {
            let first = frames.len();
            frames.extend(
                names
                    .iter()
                    .map(|name| Frame::new(name, "program", Kind::User)),
            );
            Stack {
                frames: (first..frames.len()).collect(),
                seconds: *seconds,
            }
        });
        let stacks = stacks.collect();
        Condition {
            name: name.to_owned(),
            frames,
            stacks,
        }
    }

    #[test]
    fn a_line_has_the_time_of_the_faster_before_that_of_the_slower_condition() {
        let conditions = Conditions {
            baseline: condition("a", &[(&["main", "f"], 0.5), (&["main"], 0.1)]),
            candidate: condition("b", &[(&["main"], 0.1)]),
            slower: Side::Baseline,
        };
        assert_eq!(
            folded_lines(&conditions),
            ["main 100000 100000", "main;f 0 500000"]
        );
    }

    #[test]
    fn special_characters_in_names_are_replaced() {
        let names: &[&str] = &["# a", "[u8; 8]", "b\n1 2", ""];
        let conditions = Conditions {
            baseline: condition("a", &[]),
            candidate: condition("b", &[(names, 1.0)]),
            slower: Side::Candidate,
        };
        let expected = "\u{ff03} a;[u8, 8];b\u{fffd}1 2;(no name) 0 1000000";
        assert_eq!(folded_lines(&conditions), [expected]);
    }
}
