//! A folder for files that need a name, which is removed however the probe ends.
//!
//! A cleaner, in a session of its own so that ending the probe's process group does not end it,
//! makes the folder and removes it when the probe has ended: it sleeps on a pipe that hangs up
//! then. A campaign that ends the cleaner too removes the folder of `EQUIPOISE_METRICS`, and with
//! it this one. Without a campaign, the cleaner holds a lock on the folder (`flock(2)`): `equipoise
//! doctor` reports folders without a lock.

use std::env;
use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use equipoise_reporting::problem::Problem;

use crate::child::Child;
use crate::probe::ProbeOptions;
use crate::system::{accepted, expect, problem_of};

/// The folder; removed when dropped, and when the probe dies.
pub struct Scratch {
    folder: PathBuf,
    lifeline: Option<PipeWriter>,
    cleaner: Option<Child>,
}

impl Scratch {
    /// Makes the folder in `--folder`, else next to the file of metrics, else in `TMPDIR`.
    pub fn new(options: &ProbeOptions) -> Result<Self, Problem> {
        let around = options.folder.clone().unwrap_or_else(default_folder);
        let (end_of_probe, lifeline) = pipe().map_err(problem_of("pipe"))?;
        let (mut answer, answer_writer) = pipe().map_err(problem_of("pipe"))?;
        let held_by_parent = [lifeline.as_raw_fd(), answer.as_raw_fd()];
        let at = around.clone();
        let cleaner = Child::start_alone(move || {
            for descriptor in held_by_parent {
                // SAFETY: the descriptor of this copy; while it is open, the pipe cannot hang up.
                unsafe { libc::close(descriptor) };
            }
            keep(&at, answer_writer, end_of_probe)
        })?;
        let mut answered = Vec::new();
        answer
            .read_to_end(&mut answered)
            .map_err(problem_of("the cleaner of the files"))?;
        match answered.split_first() {
            Some((&MADE, path)) => Ok(Self {
                folder: OsStr::from_bytes(path).into(),
                lifeline: Some(lifeline),
                cleaner: Some(cleaner),
            }),
            other => Err(Problem::unavailable(format!(
                "no folder can be made in {}: {}",
                around.display(),
                other.map_or_else(
                    || "its cleaner ended".into(),
                    |(_, reason)| String::from_utf8_lossy(reason)
                )
            ))),
        }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Opens the folder.
    pub fn open(&self) -> Result<File, Problem> {
        File::open(&self.folder).map_err(problem_of("the folder of the files"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        if let Some(cleaner) = self.cleaner.take() {
            // A cleaner that cannot be waited for still does its work.
            let _ = cleaner.wait();
        }
    }
}

fn default_folder() -> PathBuf {
    env::var_os("EQUIPOISE_METRICS")
        .and_then(|file| Path::new(&file).parent().map(Path::to_owned))
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or_else(env::temp_dir)
}

/// First byte of the cleaner's answer: the path follows, or the reason why there is none.
const MADE: u8 = b'+';
const NOT_MADE: u8 = b'-';

fn tagged(tag: u8, text: &[u8]) -> Vec<u8> {
    [&[tag], text].concat()
}

/// Does the work of the cleaner: makes the folder, sends its path, waits, removes it.
fn keep(
    around: &Path,
    mut answer_writer: PipeWriter,
    mut end_of_probe: PipeReader,
) -> Result<(), Problem> {
    close_streams()?;
    take_own_name();
    let made = make_private(around);
    // A probe that ended before it could read the answer leaves the folder to be removed, too.
    let _ = answer_writer.write_all(&match &made {
        Ok((folder, _)) => tagged(MADE, folder.as_os_str().as_bytes()),
        Err(problem) => tagged(NOT_MADE, problem.to_string().as_bytes()),
    });
    drop(answer_writer);
    let (folder, _held) = made?;
    let removed = problem_of("the folder of the files");
    let hung_up = end_of_probe.read_to_end(&mut Vec::new());
    fs::remove_dir_all(&folder).map_err(removed)?;
    hung_up.map(drop).map_err(removed)
}

/// Gives the cleaner a different name, so that it survives if all processes with the probe's name
/// are killed.
fn take_own_name() {
    // A cleaner that keeps the probe's name does the same work.
    // SAFETY: a string of at most fifteen bytes and a null byte.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"equipoise-clean".as_ptr()) };
}

/// Closes the standard streams, so that no reader of the probe's output waits for the cleaner.
fn close_streams() -> Result<(), Problem> {
    let nothing = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(problem_of("/dev/null"))?;
    for stream in 0..=2 {
        // SAFETY: passes numbers only.
        accepted("dup2", unsafe { libc::dup2(nothing.as_raw_fd(), stream) })?;
    }
    Ok(())
}

/// The folder and its lock. It gets its name only when it is locked, so that it never looks like an
/// abandoned folder.
fn make_private(around: &Path) -> Result<(PathBuf, File), Problem> {
    let unnamed = make_unnamed(around)?;
    let lost = problem_of("the folder of the files");
    let held = File::open(&unnamed).map_err(lost)?;
    held.lock().map_err(lost)?;
    let letters = unnamed.as_os_str().as_bytes();
    let mut name = OsStr::from_bytes(b"equipoise-probe-").to_owned();
    name.push(OsStr::from_bytes(&letters[letters.len() - RANDOM..]));
    let folder = around.join(name);
    fs::rename(&unnamed, &folder).map_err(lost)?;
    Ok((folder, held))
}

/// Number of letters that `mkdtemp` draws.
const RANDOM: usize = 6;

fn make_unnamed(around: &Path) -> Result<PathBuf, Problem> {
    let template = around.join("equipoise.new-XXXXXX");
    let mut template = CString::new(template.into_os_string().into_vec())
        .map_err(|_| Problem::usage("a folder with a null byte"))?
        .into_bytes_with_nul();
    // SAFETY: the template ends with a null byte and is written over in place.
    if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
        return Err(crate::system::refused("mkdtemp"));
    }
    template.pop();
    Ok(OsStr::from_bytes(&template).into())
}

/// Returns the name of the file system of a file, or its magic number (statfs(2)) if it is unusual.
pub fn kind_of(file: &File) -> Result<String, Problem> {
    // SAFETY: all-zero is a valid answer.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the answer can be written.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut system) };
    expect("fstatfs", result, 0)?;
    Ok(match system.f_type {
        0xEF53 => "ext".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x794C_7630 => "overlay".to_owned(),
        0x9123_683E => "btrfs".to_owned(),
        0x2FC1_2FC1 => "zfs".to_owned(),
        0x6969 => "nfs".to_owned(),
        other => format!("{other:#x}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Placement;

    fn options_in(folder: &Path) -> ProbeOptions {
        ProbeOptions {
            placement: Placement::None,
            size: 0,
            count: 0,
            folder: Some(folder.to_owned()),
        }
    }

    #[test]
    fn the_folder_and_what_is_in_it_are_gone_when_dropped() {
        let scratch = Scratch::new(&options_in(&env::temp_dir())).expect("made");
        let folder = scratch.folder.clone();
        fs::write(folder.join("file"), "x").expect("written");
        drop(scratch);
        assert!(!folder.exists());
    }

    #[test]
    fn where_no_folder_can_be_made_the_probe_is_unavailable() {
        let problem = Scratch::new(&options_in(Path::new("/proc")))
            .err()
            .expect("refused");
        assert!(
            problem.is_unavailable()
                && problem
                    .to_string()
                    .starts_with("no folder can be made in /proc: mkdtemp: "),
            "{problem}"
        );
    }

    #[test]
    fn files_of_proc_are_on_a_file_system_of_their_own() {
        let file = File::open("/proc/self/status").expect("readable");
        assert_eq!(kind_of(&file).expect("known"), "0x9fa0");
    }
}
