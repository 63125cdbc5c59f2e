//! Makes stacks with names and weights out of records.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::perf::record::{Reader, Record, Turn};
use crate::profile::sampling::Sampling;
use crate::stacks::folded::{Folded, Frame, Kind, Stacks};
use crate::stacks::kernel::KernelFunctions;
use crate::stacks::map_file::MapFiles;
use crate::stacks::names::Names;
use crate::stacks::space::{Cache, Captured, Images, Space};

/// State after the records so far.
pub struct Replay {
    sampling: Sampling,
    map_files: MapFiles,
    images: Images,
    spaces: HashMap<u32, Space>,
    names: Names,
    searched: HashSet<u32>,
    kernel: KernelFunctions,
    cache: Cache,
    folded: Folded,
    samples: u64,
    lost: u64,
    /// Stacks whose outermost frame was not reached.
    cut: u64,
    kernel_without_names: bool,
    interpreters_without_names: BTreeSet<String>,
    /// Since when each thread waits, and the sample that was taken when it began to.
    waiting: HashMap<u32, Waiting>,
    waited_ns: u64,
}

struct Waiting {
    since_ns: Option<u64>,
    sampled: Option<(Vec<Frame>, f64)>,
}

/// Result of a replay.
pub struct Finished {
    pub stacks: Stacks,
    pub samples: u64,
    pub waited_s: f64,
    pub unseen: Vec<String>,
}

/// One sample.
struct Sample<'a> {
    process: u32,
    thread: u32,
    period: u64,
    chain: Vec<u64>,
    captured: Option<Captured<'a>>,
}

impl Replay {
    /// A replay that knows nothing so far.
    pub fn new(sampling: Sampling, map_files: MapFiles) -> Self {
        Self {
            sampling,
            map_files,
            images: Images::default(),
            spaces: HashMap::new(),
            names: Names::default(),
            searched: HashSet::new(),
            kernel: KernelFunctions::read(),
            cache: Cache::new(),
            folded: Folded::default(),
            samples: 0,
            lost: 0,
            cut: 0,
            kernel_without_names: false,
            interpreters_without_names: BTreeSet::new(),
            waiting: HashMap::new(),
            waited_ns: 0,
        }
    }

    pub fn take(&mut self, ns: u64, bytes: &[u8]) {
        match Record::read(bytes) {
            Some(Record::Sample(reader)) => {
                if let Some(sample) = Sample::read(reader) {
                    self.sampled(&sample);
                }
            }
            Some(Record::Mapping(mapping)) => {
                let path = String::from_utf8_lossy(mapping.path);
                self.spaces.entry(mapping.process).or_default().map(
                    &mut self.images,
                    &path,
                    mapping.address,
                    mapping.length,
                    mapping.file_offset,
                );
            }
            Some(Record::Fork(task)) if task.process != task.parent_process => {
                if let Some(space) = self.spaces.get(&task.parent_process) {
                    self.spaces.insert(task.process, space.clone());
                }
            }
            Some(Record::Command {
                process,
                thread,
                at_exec: true,
            }) if process == thread => {
                self.spaces.remove(&process);
            }
            Some(Record::Switch { thread, turn }) => self.switched(ns, thread, turn),
            Some(Record::Lost(count)) => self.lost += count,
            _ => {}
        }
    }

    fn sampled(&mut self, sample: &Sample<'_>) {
        self.samples += 1;
        let frames = self.frames(sample);
        match self.sampling {
            Sampling::Time => self
                .folded
                .add(frames.into_iter(), sample.period as f64 * 1e-9),
            Sampling::Faults => self.folded.add(frames.into_iter(), sample.period as f64),
            Sampling::Waits => {
                let sampled = Some((frames, sample.period as f64));
                let since_ns = None;
                self.waiting
                    .insert(sample.thread, Waiting { since_ns, sampled });
            }
        }
    }

    fn switched(&mut self, ns: u64, thread: u32, turn: Turn) {
        match turn {
            Turn::Ends => {
                let waiting = self.waiting.entry(thread).or_insert(Waiting {
                    since_ns: None,
                    sampled: None,
                });
                waiting.since_ns = Some(ns);
            }
            Turn::IsTaken => {
                self.waiting.remove(&thread);
            }
            Turn::Begins => {
                let Some(waiting) = self.waiting.remove(&thread) else {
                    return;
                };
                let waited_ns = waiting.since_ns.map_or(0, |since| ns.saturating_sub(since));
                self.waited_ns += waited_ns;
                if let (Some((frames, switches)), Some(_)) = (waiting.sampled, waiting.since_ns) {
                    let weight = switches * waited_ns as f64 * 1e-9;
                    self.folded.add(frames.into_iter(), weight);
                }
            }
        }
    }

    /// Outermost first.
    fn frames(&mut self, sample: &Sample<'_>) -> Vec<Frame> {
        let process = sample.process;
        let space = self.spaces.entry(process).or_default();
        if self.searched.insert(process) && !self.names.read_map_file(process, &self.map_files) {
            let interpreters = space.paths().filter(|path| is_python(path));
            self.interpreters_without_names
                .extend(interpreters.map(str::to_owned));
        }
        let names = &self.names;
        space.name_trampolines(|low, high| names.has_generated_code(process, low, high));
        let unwound = sample
            .captured
            .as_ref()
            .map(|captured| space.unwind(&mut self.cache, captured));
        self.cut += u64::from(unwound.as_ref().is_some_and(|unwound| !unwound.whole));
        let addresses = unwound.map_or_else(Vec::new, |unwound| unwound.addresses);
        let mut frames: Vec<Frame> = Vec::new();
        for address in addresses.iter().rev() {
            frames.extend_from_slice(&self.names.of(process, space, *address));
        }
        if let Some(entry) = self.kernel.entry(&sample.chain) {
            self.kernel_without_names |= self.kernel.is_empty();
            frames.push(Frame {
                name: entry,
                module: "kernel".to_owned(),
                kind: Kind::Kernel,
            });
        }
        frames
    }

    pub fn finish(mut self) -> Finished {
        for process in self.spaces.keys() {
            // Of those that left no sample, only to remove the file.
            self.names.read_map_file(*process, &self.map_files);
        }
        let mut unseen = self.names.ignored(&self.map_files);
        if self.lost > 0 {
            unseen.push(format!("{} records had no room and are missing", self.lost));
        }
        if self.cut > 0 {
            unseen.push(format!(
                "the outer frames of {} of {} stacks: deeper than was copied, or code without \
                 unwind information",
                self.cut, self.samples
            ));
        }
        if self.kernel_without_names {
            unseen.push(
                "by which calls the kernel was entered: its names are hidden \
                 (kernel.kptr_restrict)"
                    .to_owned(),
            );
        }
        for interpreter in self.interpreters_without_names {
            unseen.push(format!(
                "Python functions of {interpreter}: it wrote no map of them (CPython does from \
                 3.12 on, with PYTHONPERFSUPPORT=1)"
            ));
        }
        Finished {
            stacks: self.folded.finish(),
            samples: self.samples,
            waited_s: self.waited_ns as f64 * 1e-9,
            unseen,
        }
    }
}

fn is_python(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.starts_with("python3") || file.starts_with("libpython3")
}

impl<'a> Sample<'a> {
    /// Reads a sample of the type that `Sampling::event` requests (`perf_event_open(2)`).
    fn read(mut reader: Reader<'a>) -> Option<Self> {
        const NO_REGISTERS: u64 = 0;
        let (process, thread, _ns) = (reader.u32()?, reader.u32()?, reader.u64()?);
        let period = reader.u64()?;
        let chain = (0..reader.u64()?)
            .map(|_| reader.u64())
            .collect::<Option<_>>()?;
        let mut sample = Self {
            process,
            thread,
            period,
            chain,
            captured: None,
        };
        if reader.u64()? == NO_REGISTERS {
            return Some(sample); // of a thread of the kernel
        }
        let frame_pointer = reader.u64()?;
        #[cfg(target_arch = "aarch64")]
        let link = reader.u64()?;
        #[cfg(not(target_arch = "aarch64"))]
        let link = 0;
        let (stack_pointer, instruction) = (reader.u64()?, reader.u64()?);
        let room = reader.u64()?;
        // The spool has left out what was not filled.
        let stack = if room == 0 { &[] } else { reader.rest_but(8)? };
        sample.captured = Some(Captured {
            instruction,
            stack_pointer,
            frame_pointer,
            link,
            stack,
        });
        Some(sample)
    }
}
