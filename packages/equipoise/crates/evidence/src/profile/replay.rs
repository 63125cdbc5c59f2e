//! Makes stacks with names and weights out of records.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::perf::record::{Reader, Record, Turn};
use crate::profile::sampling::Sampling;
use crate::stacks::Resolver;
use crate::stacks::folded::{Folded, Frame, Kind, Stacks};
use crate::stacks::kernel::KernelFunctions;
use crate::stacks::map_file::MapFiles;
use crate::stacks::space::{Captured, Space};

/// State after the records so far.
pub struct Replay {
    sampling: Sampling,
    map_files: MapFiles,
    resolver: Resolver,
    spaces: HashMap<u32, Space>,
    searched: HashSet<u32>,
    kernel: KernelFunctions,
    folded: Folded,
    samples: u64,
    lost: u64,
    kernel_without_names: bool,
    interpreters_without_names: BTreeSet<String>,
    /// Since when each thread waits, and the sample that was taken when it began to.
    waiting: HashMap<u32, Waiting>,
    waited_ns: u64,
}

#[derive(Default)]
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
    /// A replay without any events so far.
    pub fn new(sampling: Sampling, map_files: MapFiles) -> Self {
        Self {
            sampling,
            map_files,
            resolver: Resolver::default(),
            spaces: HashMap::new(),
            searched: HashSet::new(),
            kernel: KernelFunctions::read(),
            folded: Folded::default(),
            samples: 0,
            lost: 0,
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
                    &mut self.resolver.images,
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
        let period = sample.period as f64;
        match self.sampling {
            Sampling::Time => self.folded.add(frames, period * 1e-9),
            Sampling::Faults => self.folded.add(frames, period),
            Sampling::Waits => {
                let waiting = Waiting {
                    since_ns: None,
                    sampled: Some((frames, period)),
                };
                self.waiting.insert(sample.thread, waiting);
            }
        }
    }

    fn switched(&mut self, ns: u64, thread: u32, turn: Turn) {
        match turn {
            Turn::Ends => {
                self.waiting.entry(thread).or_default().since_ns = Some(ns);
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
                    self.folded.add(frames, weight);
                }
            }
        }
    }

    /// Outermost first.
    fn frames(&mut self, sample: &Sample<'_>) -> Vec<Frame> {
        let process = sample.process;
        let space = self.spaces.entry(process).or_default();
        let names = &mut self.resolver.names;
        if self.searched.insert(process) && !names.read_map_file(process, &self.map_files) {
            let interpreters = space.paths().filter(|path| is_python(path));
            self.interpreters_without_names
                .extend(interpreters.map(str::to_owned));
        }
        space.name_trampolines(|low, high| names.has_generated_code(process, low, high));
        let captured = sample.captured.as_ref();
        let mut frames = captured.map_or_else(Vec::new, |captured| {
            self.resolver.frames(process, space, captured)
        });
        if let Some(entry) = self.kernel.entry(&sample.chain) {
            self.kernel_without_names |= self.kernel.is_empty();
            frames.push(Frame::new(&entry, "kernel", Kind::Kernel));
        }
        frames
    }

    pub fn finish(mut self) -> Finished {
        for process in self.spaces.keys() {
            // For a process without samples, only to remove the file.
            self.resolver.names.read_map_file(*process, &self.map_files);
        }
        let mut unseen = self.resolver.names.ignored(&self.map_files);
        if self.lost > 0 {
            unseen.push(format!("{} records had no room and are missing", self.lost));
        }
        unseen.extend(self.resolver.cut_stacks(self.samples));
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
        if reader.u64()? == 0 {
            return Some(sample); // without registers: of a thread of the kernel
        }
        let frame_pointer = reader.u64()?;
        #[cfg(target_arch = "aarch64")]
        let link = reader.u64()?;
        #[cfg(not(target_arch = "aarch64"))]
        let link = 0;
        let (stack_pointer, instruction) = (reader.u64()?, reader.u64()?);
        let room = reader.u64()?;
        // The spool has left out the unfilled part.
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
