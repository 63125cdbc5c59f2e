//! Names the stacks of the allocations that the recorder (crates/interpose/recorder) has sampled.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Serialize;

use equipoise_reporting::problem::Problem;

use crate::maps::Map;
use crate::stacks::Resolver;
use crate::stacks::folded::{FoldedStacks, Frame, Kind, Stacks};
use crate::stacks::mapped_code::{MappedCode, RawStack};

/// The JSON document. Weights are estimated bytes; the innermost frame is the size of the block.
#[derive(Debug, Serialize)]
pub struct Report {
    source: &'static str,
    version: u32,
    samples: u64,
    #[serde(flatten)]
    stacks: Stacks,
    unseen: Vec<String>,
}

/// First word of a recording, with the format's version (crates/interpose/recorder/src/file.rs).
const MAGIC: u64 = u64::from_le_bytes(*b"EQALLOC1");
/// Length of the recording of a process for which the disk was full.
/// `src/equipoise/why/evidence/allocations.py` reports such files.
const FULL_DISK_FILE_BYTES: u64 = 1;
/// Indices of the numbers in the header, which consists of words of 8 bytes.
mod header {
    pub const WORDS: usize = 26;
    pub const MAGIC: usize = 0;
    pub const MAPS_OFFSET: usize = 8;
    pub const MAPS_BYTES: usize = 9;
    pub const SAMPLES_OFFSET: usize = 10;
    pub const SAMPLE_BYTES: usize = 11;
    pub const MAX_SAMPLES: usize = 12;
    pub const SAMPLES_TAKEN: usize = 13;
    pub const PROCESS_ID: usize = 14;
    pub const MACHINE: usize = 25;
}
/// Indices of the numbers in a sample, which consists of words of 8 bytes.
mod sample {
    pub const SIZE: usize = 0;
    /// Mean number of allocated bytes between two samples.
    pub const INTERVAL: usize = 1;
    pub const STACK_BYTES: usize = 4;
    /// Instruction pointer, stack pointer, frame pointer, link register.
    pub const REGISTERS: usize = 6;
    pub const STACK: usize = 16;
}
/// Number of this architecture in a recording.
const THIS_MACHINE: u64 = if cfg!(target_arch = "x86_64") { 1 } else { 2 };
/// Module of the recorder, whose frames are left out.
const RECORDER_MODULE: &str = "libequipoise_recorder.so";

/// Returns the report on all recordings in a folder.
pub fn stacks(folder: &Path) -> Result<Report, Problem> {
    let folder_name = folder.display().to_string();
    let to_problem = Problem::system(&folder_name);
    let mut files: Vec<_> = fs::read_dir(folder)
        .map_err(to_problem)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension() == Some(OsStr::new("allocations")))
        .collect();
    files.sort();
    let mut reader = RecordingsReader::default();
    for file in files {
        let opened = File::open(&file).map_err(to_problem)?;
        if opened.metadata().map_err(to_problem)?.len() != FULL_DISK_FILE_BYTES {
            reader.add(&Recording(opened));
        }
    }
    Ok(reader.finish())
}

/// The sparse file of one process.
struct Recording(File);

/// Bytes of a recording, read as words of 8 bytes.
struct Words(Vec<u8>);

impl Words {
    fn word(&self, index: usize) -> Option<u64> {
        let bytes = self.0.get(8 * index..)?.get(..8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    fn size_at(&self, index: usize) -> Option<usize> {
        usize::try_from(self.word(index)?).ok()
    }
}

impl Recording {
    fn bytes(&self, offset: usize, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, offset as u64).ok()?;
        Some(bytes)
    }

    fn header(&self) -> Option<Words> {
        Some(Words(self.bytes(0, 8 * header::WORDS)?))
    }

    fn maps(&self, header: &Words) -> Option<String> {
        let offset = header.size_at(header::MAPS_OFFSET)?;
        let mut bytes = self.bytes(offset, header.size_at(header::MAPS_BYTES)?)?;
        let line_end = bytes.iter().rposition(|byte| *byte == b'\n')?;
        bytes.truncate(line_end);
        String::from_utf8(bytes).ok()
    }
}

#[derive(Default)]
struct RecordingsReader {
    resolver: Resolver,
    folded: FoldedStacks,
    samples: u64,
    /// Number of samples that their recordings had no space for.
    dropped_samples: u64,
    unreadable_recordings: u64,
}

impl RecordingsReader {
    fn add(&mut self, recording: &Recording) {
        self.unreadable_recordings += u64::from(self.add_samples(recording).is_none());
    }

    /// Adds the samples of a recording; `None` if a part of the recording cannot be read.
    fn add_samples(&mut self, recording: &Recording) -> Option<()> {
        let header = recording.header()?;
        if header.word(header::MAGIC)? != MAGIC || header.word(header::MACHINE)? != THIS_MACHINE {
            return None;
        }
        let process = u32::try_from(header.word(header::PROCESS_ID)?).ok()?;
        let code = self.mapped_code(&recording.maps(&header)?);
        let taken_samples = header.size_at(header::SAMPLES_TAKEN)?;
        let max_samples = header.size_at(header::MAX_SAMPLES)?;
        let offset = header.size_at(header::SAMPLES_OFFSET)?;
        let length = header.size_at(header::SAMPLE_BYTES)?;
        self.dropped_samples += taken_samples.saturating_sub(max_samples) as u64;
        for index in 0..taken_samples.min(max_samples) {
            let sample = Words(recording.bytes(offset + index * length, length)?);
            self.add_sample(&sample, process, &code)?;
        }
        Some(())
    }

    fn mapped_code(&mut self, maps: &str) -> MappedCode {
        let mut code = MappedCode::default();
        for map in Map::all(maps).filter(|map| map.is_executable) {
            let length = map.end - map.start;
            let images = &mut self.resolver.images;
            code.add(images, map.path, map.start, length, map.file_offset);
        }
        code
    }

    fn add_sample(&mut self, sample: &Words, process: u32, code: &MappedCode) -> Option<()> {
        let (size, interval) = (sample.word(sample::SIZE)?, sample.word(sample::INTERVAL)?);
        if interval == 0 {
            return Some(()); // the process ended while it took this sample
        }
        let register = |index| sample.word(sample::REGISTERS + index);
        let stack_bytes = sample.size_at(sample::STACK_BYTES)?;
        let stack = sample.0.get(8 * sample::STACK..)?.get(..stack_bytes)?;
        let captured = RawStack {
            instruction: register(0)?,
            stack_pointer: register(1)?,
            frame_pointer: register(2)?,
            link: register(3)?,
            stack,
        };
        self.samples += 1;
        let mut frames = self.resolver.frames(process, code, &captured);
        frames.retain(|frame| frame.module != RECORDER_MODULE);
        frames.push(Frame::new(&format!("{size} bytes"), "", Kind::Size));
        self.folded.add(frames, estimated_bytes(size, interval));
        Some(())
    }

    fn finish(self) -> Report {
        let mut unseen = Vec::new();
        if self.unreadable_recordings > 0 {
            unseen.push(format!(
                "{} recordings are missing: they are of another machine or version, or incomplete",
                self.unreadable_recordings
            ));
        }
        let dropped = self.dropped_samples;
        if dropped > 0 {
            unseen.push(format!(
                "{dropped} sampled stacks had no space in their file"
            ));
        }
        unseen.extend(self.resolver.cut_stacks_remark(self.samples));
        Report {
            source: "allocation_stacks",
            version: 1,
            samples: self.samples,
            stacks: self.folded.finish(),
            unseen,
        }
    }
}

/// Number of bytes that a sample represents: a block of `size` bytes is sampled with the
/// probability `1 - exp(-size / interval)`.
fn estimated_bytes(size: u64, interval: u64) -> f64 {
    size as f64 / -(-(size as f64) / interval as f64).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_block_counts_its_size_and_a_small_block_the_sampling_interval() {
        assert!((estimated_bytes(1 << 30, 1 << 14) - f64::from(1 << 30)).abs() < 1.0);
        assert!((estimated_bytes(16, 1 << 20) / f64::from(1 << 20) - 1.0).abs() < 1e-4);
    }

    #[test]
    fn a_file_that_is_not_a_recording_counts_as_unreadable() {
        let mut reader = RecordingsReader::default();
        let file = File::open("/proc/self/exe").expect("opened");
        reader.add(&Recording(file));
        assert_eq!(reader.finish().unseen.len(), 1);
    }
}
