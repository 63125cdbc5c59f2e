//! Stacks of the allocations that the recorder (crates/interpose/recorder) has sampled.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Serialize;

use equipoise_reporting::problem::Problem;

use crate::maps::Map;
use crate::stacks::Resolver;
use crate::stacks::folded::{Folded, Frame, Kind, Stacks};
use crate::stacks::space::{Captured, Space};

/// The document; weights are estimated bytes, and the innermost frame of each stack is the size.
#[derive(Debug, Serialize)]
pub struct Report {
    source: &'static str,
    version: u32,
    samples: u64,
    #[serde(flatten)]
    stacks: Stacks,
    unseen: Vec<String>,
}

/// "EQALLOC" and the version of the layout (crates/interpose/recorder/src/file.rs).
const MAGIC: u64 = u64::from_le_bytes(*b"EQALLOC1");
/// Length of the file of a process whose recording found no room on the disk. The reader of the
/// numbers reports it (src/equipoise/why/evidence/allocations.py).
const NO_ROOM_BYTES: u64 = 1;
/// Places of numbers in the header, in words.
mod header {
    pub const WORDS: usize = 26;
    pub const MAPS_OFFSET: usize = 8;
    pub const MAPS_BYTES: usize = 9;
    pub const SAMPLES_OFFSET: usize = 10;
    pub const SAMPLE_BYTES: usize = 11;
    pub const SAMPLES: usize = 12;
    pub const SAMPLES_TAKEN: usize = 13;
    pub const PROCESS: usize = 14;
    pub const MACHINE: usize = 25;
}
/// Places of numbers in a sample, in words.
mod sample {
    pub const SIZE: usize = 0;
    pub const INTERVAL: usize = 1;
    pub const KEPT: usize = 4;
    pub const REGISTERS: usize = 6;
    pub const STACK: usize = 16;
}
const THIS_MACHINE: u64 = if cfg!(target_arch = "x86_64") { 1 } else { 2 };
/// Module of the recorder, whose own frames are left out.
const RECORDER: &str = "libequipoise_recorder.so";

/// Reads every recording of a folder.
pub fn stacks(folder: &Path) -> Result<Report, Problem> {
    let folder_name = folder.display().to_string();
    let refused = Problem::system(&folder_name);
    let mut files: Vec<_> = fs::read_dir(folder)
        .map_err(refused)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|word| word == "allocations"))
        .collect();
    files.sort();
    let mut reading = Reading::default();
    for file in files {
        let opened = File::open(&file).map_err(refused)?;
        if opened.metadata().map_err(refused)?.len() != NO_ROOM_BYTES {
            reading.add(&Recording(opened));
        }
    }
    Ok(reading.finish())
}

/// The file of one process; most of the file was never written.
struct Recording(File);

/// Words of a file.
struct Words(Vec<u8>);

impl Words {
    fn at(&self, place: usize) -> Option<u64> {
        let bytes = self.0.get(8 * place..)?.get(..8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    fn number_at(&self, place: usize) -> Option<usize> {
        usize::try_from(self.at(place)?).ok()
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
        let offset = header.number_at(header::MAPS_OFFSET)?;
        let mut bytes = self.bytes(offset, header.number_at(header::MAPS_BYTES)?)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n')?;
        bytes.truncate(whole);
        String::from_utf8(bytes).ok()
    }
}

#[derive(Default)]
struct Reading {
    resolver: Resolver,
    folded: Folded,
    samples: u64,
    without_room: u64,
    unreadable: u64,
}

impl Reading {
    fn add(&mut self, recording: &Recording) {
        self.unreadable += u64::from(self.add_samples(recording).is_none());
    }

    /// Adds the samples of a recording; `None` at the first part that cannot be read.
    fn add_samples(&mut self, recording: &Recording) -> Option<()> {
        let header = recording.header()?;
        if header.at(0)? != MAGIC || header.at(header::MACHINE)? != THIS_MACHINE {
            return None;
        }
        let process = u32::try_from(header.at(header::PROCESS)?).ok()?;
        let space = self.space(&recording.maps(&header)?);
        let taken = header.number_at(header::SAMPLES_TAKEN)?;
        let room = header.number_at(header::SAMPLES)?;
        let first = header.number_at(header::SAMPLES_OFFSET)?;
        let length = header.number_at(header::SAMPLE_BYTES)?;
        self.without_room += taken.saturating_sub(room) as u64;
        for index in 0..taken.min(room) {
            let sample = Words(recording.bytes(first + index * length, length)?);
            self.sample(&sample, process, &space)?;
        }
        Some(())
    }

    fn space(&mut self, maps: &str) -> Space {
        let mut space = Space::default();
        for map in Map::all(maps).filter(|map| map.is_executable) {
            let length = map.high - map.low;
            let images = &mut self.resolver.images;
            space.map(images, map.path, map.low, length, map.file_offset);
        }
        space
    }

    fn sample(&mut self, sample: &Words, process: u32, space: &Space) -> Option<()> {
        let (size, interval) = (sample.at(sample::SIZE)?, sample.at(sample::INTERVAL)?);
        if interval == 0 {
            return Some(()); // the process ended while it was taken
        }
        let register = |number| sample.at(sample::REGISTERS + number);
        let kept = sample.number_at(sample::KEPT)?;
        let stack = sample.0.get(8 * sample::STACK..)?.get(..kept)?;
        let captured = Captured {
            instruction: register(0)?,
            stack_pointer: register(1)?,
            frame_pointer: register(2)?,
            link: register(3)?,
            stack,
        };
        self.samples += 1;
        let mut frames = self.resolver.frames(process, space, &captured);
        frames.retain(|frame| frame.module != RECORDER);
        frames.push(Frame::new(&format!("{size} bytes"), "", Kind::Size));
        self.folded.add(frames, estimated_bytes(size, interval));
        Some(())
    }

    fn finish(self) -> Report {
        let mut unseen = Vec::new();
        if self.unreadable > 0 {
            unseen.push(format!(
                "{} recordings are of another machine or version, or were cut off",
                self.unreadable
            ));
        }
        if self.without_room > 0 {
            unseen.push(format!("{} sampled stacks had no room", self.without_room));
        }
        unseen.extend(self.resolver.cut_stacks(self.samples));
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
    fn a_large_block_stands_for_itself_and_a_small_one_for_the_interval() {
        assert!((estimated_bytes(1 << 30, 1 << 14) - f64::from(1 << 30)).abs() < 1.0);
        assert!((estimated_bytes(16, 1 << 20) / f64::from(1 << 20) - 1.0).abs() < 1e-4);
    }

    #[test]
    fn a_file_of_something_else_counts_as_unreadable() {
        let mut reading = Reading::default();
        let other = File::open("/proc/self/exe").expect("opened");
        reading.add(&Recording(other));
        assert_eq!(reading.finish().unseen.len(), 1);
    }
}
