//! Turns the records of a run into stacks with names and weights.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::perf::record::{Reader, Record, Turn};
use crate::profile::sampling::Sampling;
use crate::stacks::Resolver;
use crate::stacks::folded::{FoldedStacks, Frame, Kind, Stacks};
use crate::stacks::kernel::KernelFunctions;
use crate::stacks::map_file::MapFiles;
use crate::stacks::space::{Captured, Space};

/// The state after the records so far.
pub struct Replay {
    sampling: Sampling,
    map_files: MapFiles,
    resolver: Resolver,
    spaces: HashMap<u32, Space>,
    searched_processes: HashSet<u32>,
    kernel_functions: KernelFunctions,
    folded: FoldedStacks,
    samples: u64,
    lost: u64,
    is_kernel_unnamed: bool,
    unnamed_interpreters: BTreeSet<String>,
    waiting_threads: HashMap<u32, Waiting>,
    waited_ns: u64,
}

/// A waiting thread: when its wait began, and the sample that was taken then.
#[derive(Default)]
struct Waiting {
    began_ns: Option<u64>,
    sampled: Option<(Vec<Frame>, f64)>,
}

pub struct ReplayResult {
    pub stacks: Stacks,
    pub samples: u64,
    pub waited_s: f64,
    pub unseen: Vec<String>,
}

struct Sample<'a> {
    process: u32,
    thread: u32,
    period: u64,
    chain: Vec<u64>,
    captured: Option<Captured<'a>>,
}

impl Replay {
    pub fn new(sampling: Sampling, map_files: MapFiles) -> Self {
        Self {
            sampling,
            map_files,
            resolver: Resolver::default(),
            spaces: HashMap::new(),
            searched_processes: HashSet::new(),
            kernel_functions: KernelFunctions::read(),
            folded: FoldedStacks::default(),
            samples: 0,
            lost: 0,
            is_kernel_unnamed: false,
            unnamed_interpreters: BTreeSet::new(),
            waiting_threads: HashMap::new(),
            waited_ns: 0,
        }
    }

    pub fn add(&mut self, ns: u64, bytes: &[u8]) {
        match Record::read(bytes) {
            Some(Record::Sample(reader)) => {
                if let Some(sample) = Sample::read(reader) {
                    self.add_sample(&sample);
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
            Some(Record::Switch { thread, turn }) => self.add_switch(ns, thread, turn),
            Some(Record::Lost(count)) => self.lost += count,
            _ => {}
        }
    }

    fn add_sample(&mut self, sample: &Sample<'_>) {
        self.samples += 1;
        let frames = self.frames(sample);
        let period = sample.period as f64;
        match self.sampling {
            Sampling::Time => self.folded.add(frames, period * 1e-9),
            Sampling::Faults => self.folded.add(frames, period),
            Sampling::Waits => {
                let waiting = Waiting {
                    began_ns: None,
                    sampled: Some((frames, period)),
                };
                self.waiting_threads.insert(sample.thread, waiting);
            }
        }
    }

    fn add_switch(&mut self, ns: u64, thread: u32, turn: Turn) {
        match turn {
            Turn::Ends => {
                self.waiting_threads.entry(thread).or_default().began_ns = Some(ns);
            }
            Turn::Preempted => {
                self.waiting_threads.remove(&thread);
            }
            Turn::Begins => {
                let Some(waiting) = self.waiting_threads.remove(&thread) else {
                    return;
                };
                let waited_ns = waiting.began_ns.map_or(0, |since| ns.saturating_sub(since));
                self.waited_ns += waited_ns;
                if let (Some((frames, switches)), Some(_)) = (waiting.sampled, waiting.began_ns) {
                    let weight = switches * waited_ns as f64 * 1e-9;
                    self.folded.add(frames, weight);
                }
            }
        }
    }

    /// Returns the frames of a sample, the outermost first.
    fn frames(&mut self, sample: &Sample<'_>) -> Vec<Frame> {
        let process = sample.process;
        let space = self.spaces.entry(process).or_default();
        let names = &mut self.resolver.names;
        if self.searched_processes.insert(process) && !names.read_map_file(process, &self.map_files)
        {
            let interpreters = space.paths().filter(|path| is_python(path));
            self.unnamed_interpreters
                .extend(interpreters.map(str::to_owned));
        }
        space.name_trampolines(|low, high| names.has_generated_code(process, low, high));
        let captured = sample.captured.as_ref();
        let mut frames = captured.map_or_else(Vec::new, |captured| {
            self.resolver.frames(process, space, captured)
        });
        if let Some(entry) = self.kernel_functions.entry(&sample.chain) {
            self.is_kernel_unnamed |= self.kernel_functions.is_empty();
            frames.push(Frame::new(&entry, "kernel", Kind::Kernel));
        }
        frames
    }

    pub fn finish(mut self) -> ReplayResult {
        for process in self.spaces.keys() {
            // The map files of processes without samples are read so that they are removed.
            self.resolver.names.read_map_file(*process, &self.map_files);
        }
        let mut unseen = self.resolver.names.ignored_map_files(&self.map_files);
        if self.lost > 0 {
            unseen.push(format!(
                "{} records that came too fast to be read",
                self.lost
            ));
        }
        unseen.extend(self.resolver.cut_stacks(self.samples));
        if self.is_kernel_unnamed {
            unseen.push(
                "the system calls in the stacks: kernel.kptr_restrict hides the names of the \
                 kernel's functions"
                    .to_owned(),
            );
        }
        for interpreter in self.unnamed_interpreters {
            unseen.push(format!(
                "Python functions of {interpreter}: it wrote no map file (CPython 3.12 and later \
                 write one with PYTHONPERFSUPPORT=1)"
            ));
        }
        ReplayResult {
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
            return Some(sample); // a thread of the kernel has no user registers
        }
        let frame_pointer = reader.u64()?;
        #[cfg(target_arch = "aarch64")]
        let link = reader.u64()?;
        #[cfg(not(target_arch = "aarch64"))]
        let link = 0;
        let (stack_pointer, instruction) = (reader.u64()?, reader.u64()?);
        let room = reader.u64()?;
        // The spool has removed the unfilled part of the room for the stack.
        let stack = if room == 0 { &[] } else { reader.but_last(8)? };
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
