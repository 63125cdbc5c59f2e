//! Probe `file_delete`: a file less.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::new_files::{BYTES, NewFiles};
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "file_delete",
    class: Class::Files,
    words: "unlinkat of a file (of 0 bytes, of 10 KiB) that was made just before",
    metric: Metric::Latency,
    placements: &[Placement::None],
    size: Some(BYTES),
    count: None,
    needs: "a folder that can be written to",
    rows: &[
        Row::plain("file_delete_0k").of_size(0),
        Row::plain("file_delete_10k").of_size(10 << 10),
    ],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    let files = NewFiles::in_folder_of(asked)?;
    let system = files.file_system()?;
    let opened = Opened::latency(move |count| Ok(files.make_and_delete(count)?.deleting));
    Ok(opened.with_fact("file_system", system))
}
