//! A temporary folder for the files of a probe. It is removed even if the probe is killed.
//!
//! A child process, the cleaner, creates the folder. It waits on a pipe that closes when the probe
//! ends, and then removes the folder. The cleaner has its own session, so it survives a kill of the
//! process group. If a campaign kills the cleaner, too, it also removes the folder of
//! `EQUIPOISE_METRICS`, which contains this folder. Without a campaign, the cleaner locks the
//! folder (`flock(2)`), and `equipoise doctor` reports folders without a lock.

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
use crate::system::{check_negative, check_result, problem_of};

/// The temporary folder. It is removed when this is dropped, and when the probe dies.
pub struct Scratch {
    folder: PathBuf,
    /// Pipe to the cleaner. The cleaner removes the folder when the pipe closes.
    lifeline: Option<PipeWriter>,
    cleaner: Option<Child>,
}

impl Scratch {
    /// Creates the folder in `--folder`; by default next to the metrics file, or in `TMPDIR`.
    pub fn new(options: &ProbeOptions) -> Result<Self, Problem> {
        let parent = options.folder.clone().unwrap_or_else(default_parent);
        let (end_of_probe, lifeline) = pipe().map_err(problem_of("pipe"))?;
        let (mut answer, answer_writer) = pipe().map_err(problem_of("pipe"))?;
        let probe_descriptors = [lifeline.as_raw_fd(), answer.as_raw_fd()];
        let cleaner_parent = parent.clone();
        let cleaner = Child::start_session(move || {
            for descriptor in probe_descriptors {
                // SAFETY: closes the cleaner's copy. With this copy, the pipe could not close.
                unsafe { libc::close(descriptor) };
            }
            create_and_clean(&cleaner_parent, answer_writer, end_of_probe)
        })?;
        let mut answer_bytes = Vec::new();
        answer
            .read_to_end(&mut answer_bytes)
            .map_err(problem_of("the cleaner of the files"))?;
        match answer_bytes.split_first() {
            Some((&CREATED, path)) => Ok(Self {
                folder: OsStr::from_bytes(path).into(),
                lifeline: Some(lifeline),
                cleaner: Some(cleaner),
            }),
            other => Err(Problem::unavailable(format!(
                "no folder can be made in {}: {}",
                parent.display(),
                other.map_or_else(
                    || "its cleaner ended".into(),
                    |(_, reason)| String::from_utf8_lossy(reason)
                )
            ))),
        }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    pub fn open(&self) -> Result<File, Problem> {
        File::open(&self.folder).map_err(problem_of("the folder of the files"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        if let Some(cleaner) = self.cleaner.take() {
            // If the wait fails, the cleaner still removes the folder.
            let _ = cleaner.wait();
        }
    }
}

fn default_parent() -> PathBuf {
    env::var_os("EQUIPOISE_METRICS")
        .and_then(|file| Path::new(&file).parent().map(Path::to_owned))
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or_else(env::temp_dir)
}

/// First byte of an answer of the cleaner that has the path of the folder.
const CREATED: u8 = b'+';
/// First byte of an answer of the cleaner that has the reason why there is no folder.
const NOT_CREATED: u8 = b'-';

fn prefixed(tag: u8, text: &[u8]) -> Vec<u8> {
    [&[tag], text].concat()
}

/// Does the work of the cleaner: creates the folder, sends its path, waits, removes the folder.
fn create_and_clean(
    parent: &Path,
    mut answer_writer: PipeWriter,
    mut end_of_probe: PipeReader,
) -> Result<(), Problem> {
    close_streams()?;
    rename_process();
    let result = create_locked(parent);
    // If the probe has ended, it cannot read the answer. The folder is removed nevertheless.
    let _ = answer_writer.write_all(&match &result {
        Ok((folder, _)) => prefixed(CREATED, folder.as_os_str().as_bytes()),
        Err(problem) => prefixed(NOT_CREATED, problem.to_string().as_bytes()),
    });
    drop(answer_writer);
    let (folder, _lock) = result?;
    let problem = problem_of("the folder of the files");
    let wait_result = end_of_probe.read_to_end(&mut Vec::new());
    fs::remove_dir_all(&folder).map_err(problem)?;
    wait_result.map(drop).map_err(problem)
}

/// Gives the cleaner another process name, so that it survives a kill of the probe by name.
fn rename_process() {
    // A failure is harmless: the cleaner works with any name.
    // SAFETY: a string of at most fifteen bytes and a null byte.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"equipoise-clean".as_ptr()) };
}

/// Closes the standard streams, so that no reader of the probe's output waits for the cleaner.
fn close_streams() -> Result<(), Problem> {
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(problem_of("/dev/null"))?;
    for stream in 0..=2 {
        // SAFETY: passes numbers only.
        check_negative("dup2", unsafe { libc::dup2(null.as_raw_fd(), stream) })?;
    }
    Ok(())
}

/// Creates the folder, and returns it with its lock. It gets its final name only when it is locked,
/// so it never looks like an abandoned folder.
fn create_locked(parent: &Path) -> Result<(PathBuf, File), Problem> {
    let new_folder = create_new(parent)?;
    let problem = problem_of("the folder of the files");
    let lock = File::open(&new_folder).map_err(problem)?;
    lock.lock().map_err(problem)?;
    let bytes = new_folder.as_os_str().as_bytes();
    let mut name = OsStr::from_bytes(b"equipoise-probe-").to_owned();
    name.push(OsStr::from_bytes(&bytes[bytes.len() - RANDOM_LETTERS..]));
    let folder = parent.join(name);
    fs::rename(&new_folder, &folder).map_err(problem)?;
    Ok((folder, lock))
}

/// Number of letters that `mkdtemp` draws.
const RANDOM_LETTERS: usize = 6;

fn create_new(parent: &Path) -> Result<PathBuf, Problem> {
    let template = parent.join("equipoise.new-XXXXXX");
    let mut template = CString::new(template.into_os_string().into_vec())
        .map_err(|_| Problem::usage("a folder with a null byte"))?
        .into_bytes_with_nul();
    // SAFETY: the template ends with a null byte, and mkdtemp may overwrite it.
    if unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) }.is_null() {
        return Err(crate::system::last_problem("mkdtemp"));
    }
    template.pop();
    Ok(OsStr::from_bytes(&template).into())
}

/// Returns the name of a file's file system; for a rare one, the magic number (statfs(2)).
pub fn file_system_of(file: &File) -> Result<String, Problem> {
    // SAFETY: all-zero is a valid answer.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the answer can be written.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut system) };
    check_result("fstatfs", result, 0)?;
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
    fn dropping_removes_the_folder_and_its_files() {
        let scratch = Scratch::new(&options_in(&env::temp_dir())).expect("made");
        let folder = scratch.folder.clone();
        fs::write(folder.join("file"), "x").expect("written");
        drop(scratch);
        assert!(!folder.exists());
    }

    #[test]
    fn the_probe_is_unavailable_if_no_folder_can_be_created() {
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
    fn the_file_system_of_proc_is_shown_by_its_magic_number() {
        let file = File::open("/proc/self/status").expect("readable");
        assert_eq!(file_system_of(&file).expect("known"), "0x9fa0");
    }
}
