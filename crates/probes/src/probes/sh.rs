//! Probe `sh`: a new process through the shell.

use equipoise_reporting::problem::Problem;

use crate::asked::Asked;
use crate::probe::{Class, Metric, Opened, Placement, Probe, Row};
use crate::small::{Work, making_children};

/// What `--list` says.
pub const PROBE: Probe = Probe {
    name: "sh",
    class: Class::Process,
    words: "as exec, through /bin/sh -c",
    metric: Metric::Latency,
    placements: &[Placement::None, Placement::SameCpu],
    size: None,
    count: None,
    needs: "/bin/sh, and memory files that can be executed",
    rows: &[Row::plain("sh")],
    open,
};

fn open(asked: &Asked) -> Result<Opened, Problem> {
    Ok(making_children(asked, Work::Shell)?.with_fact("shell", shell_file()))
}

/// The file that `/bin/sh` is: dash, bash, busybox.
fn shell_file() -> String {
    std::fs::canonicalize("/bin/sh").map_or_else(
        |error| error.to_string(),
        |file| file.to_string_lossy().into_owned(),
    )
}
