//! A differential flame graph: widths are of the slower condition, colours show the difference.

use std::collections::BTreeMap;
use std::io;

use inferno::flamegraph::{self, Options};

use equipoise_reporting::problem::Problem;

use crate::pictures::{Condition, Conditions, Stack};

/// Narrower frames are left out, in per cent of the whole.
const MIN_WIDTH: f64 = 0.1;
const WIDTH: usize = 1200;

/// Draws the flame graph as SVG; without a stack of the slower condition, the picture has a note.
pub fn draw(conditions: &Conditions, writer: impl io::Write) -> Result<(), Problem> {
    let lines = lines(conditions);
    let mut options = options(conditions);
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), writer)
        .map_err(Problem::system("the flame graph"))
}

fn options(conditions: &Conditions) -> Options<'static> {
    let [faster, slower] = conditions.by_speed();
    let mut options = Options::default();
    options.title = one_line(&format!("{} beside {}", slower.name, faster.name));
    options.subtitle = Some(one_line(&format!(
        "widths: seconds on a processor of {}; red: more in the function itself than {}, blue: less",
        slower.name, faster.name
    )));
    "µs".clone_into(&mut options.count_name);
    options.image_width = Some(WIDTH);
    options.min_width = MIN_WIDTH;
    options
}

/// One line for each stack: names, and the microseconds of the faster and the slower condition.
fn lines(conditions: &Conditions) -> Vec<String> {
    let mut stacks: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (place, condition) in conditions.by_speed().into_iter().enumerate() {
        for stack in &condition.stacks {
            let both = stacks.entry(names(condition, stack)).or_default();
            both[place] += microseconds(stack.seconds);
        }
    }
    let line = |(names, [faster, slower]): (String, [u64; 2])| format!("{names} {faster} {slower}");
    stacks.into_iter().map(line).collect()
}

fn names(condition: &Condition, stack: &Stack) -> String {
    if stack.frames.is_empty() {
        return "(no stack)".to_owned();
    }
    let names = stack.frames.iter().map(|place| {
        let name = one_line(&condition.frames[*place].name);
        // Of these the format makes the border between two frames, and a remark.
        name.replace(';', ",").replace('#', "\u{ff03}")
    });
    names.collect::<Vec<_>>().join(";")
}

/// Without the characters that XML cannot hold even if escaped.
fn one_line(text: &str) -> String {
    let forbidden =
        |letter: char| letter.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&letter);
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
    fn a_line_has_the_faster_and_then_the_slower_condition() {
        let conditions = Conditions {
            baseline: condition("a", &[(&["main", "f"], 0.5), (&["main"], 0.1)]),
            candidate: condition("b", &[(&["main"], 0.1)]),
            slower: Side::Baseline,
        };
        assert_eq!(
            lines(&conditions),
            ["main 100000 100000", "main;f 0 500000"]
        );
    }

    #[test]
    fn a_name_cannot_end_its_frame_or_its_line() {
        let names: &[&str] = &["# a", "[u8; 8]", "b\n1 2", ""];
        let conditions = Conditions {
            baseline: condition("a", &[]),
            candidate: condition("b", &[(names, 1.0)]),
            slower: Side::Candidate,
        };
        let expected = "\u{ff03} a;[u8, 8];b\u{fffd}1 2;(no name) 0 1000000";
        assert_eq!(lines(&conditions), [expected]);
    }
}
