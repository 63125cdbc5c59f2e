//! The one path that probes of paths use, so that hosts can be compared.

use std::ffi::CStr;
use std::fs::File;
use std::path::Path;

use equipoise_reporting::problem::Problem;

use crate::file_system::kind_of;

/// Two components, readable by everybody, and on nearly every Linux.
pub const FIXED: &CStr = c"/etc/passwd";

/// Sees that it is there; gives back the kind of its file system.
///
/// # Errors
/// Unavailable if it cannot be read.
pub fn fixed_file() -> Result<String, Problem> {
    let path = Path::new(FIXED.to_str().expect("it is ASCII"));
    let file = File::open(path)
        .map_err(|error| Problem::unavailable(format!("{}: {error}", path.display())))?;
    kind_of(&file)
}
