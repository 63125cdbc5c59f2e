//! Turns the records of a run into stacks with names and weights.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::perf::record::{Reader, Record, SwitchKind};
use crate::profile::sampling::Sampling;
use crate::stacks::Resolver;
use crate::stacks::folded::{FoldedStacks, Frame, Kind, Stacks};
use crate::stacks::kernel::KernelFunctions;
use crate::stacks::map_file::MapFiles;
use crate::stacks::mapped_code::{MappedCode, RawStack};

/// Adds the records of a run one after another, in the order of their times.
pub struct Replay {
    sampling: Sampling,
    map_files: MapFiles,
    resolver: Resolver,
    code_by_process: HashMap<u32, MappedCode>,
    /// Processes whose map file was searched for.
    searched_processes: HashSet<u32>,
    kernel_functions: KernelFunctions,
    folded: FoldedStacks,
    samples: u64,
    lost_records: u64,
    /// Whether a sample is inside the kernel, whose functions have no names.
    has_unnamed_entry_point: bool,
    /// Paths of Python interpreters that wrote no map file.
    unnamed_interpreters: BTreeSet<String>,
    waiting_threads: HashMap<u32, Waiting>,
    waited_ns: u64,
}

/// A waiting thread.
#[derive(Default)]
struct Waiting {
    /// Time at which the thread stopped to run, if this is known.
    began_ns: Option<u64>,
    /// Frames of the thread when it stopped, and the number of waits that this sample represents.
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
    /// Nanoseconds, page faults or waits that the sample represents.
    period: u64,
    kernel_chain: Vec<u64>,
    captured: Option<RawStack<'a>>,
}

impl Replay {
    pub fn new(sampling: Sampling, map_files: MapFiles) -> Self {
        Self {
            sampling,
            map_files,
            resolver: Resolver::default(),
            code_by_process: HashMap::new(),
            searched_processes: HashSet::new(),
            kernel_functions: KernelFunctions::read(),
            folded: FoldedStacks::default(),
            samples: 0,
            lost_records: 0,
            has_unnamed_entry_point: false,
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
                let code = self.code_by_process.entry(mapping.process).or_default();
                code.add(
                    &mut self.resolver.images,
                    &path,
                    mapping.address,
                    mapping.length,
                    mapping.file_offset,
                );
            }
            Some(Record::Fork(task)) if task.process != task.parent_process => {
                if let Some(code) = self.code_by_process.get(&task.parent_process) {
                    self.code_by_process.insert(task.process, code.clone());
                }
            }
            Some(Record::ThreadName {
                process,
                thread,
                at_exec: true,
            }) if process == thread => {
                self.code_by_process.remove(&process);
            }
            Some(Record::Switch { thread, kind }) => self.add_switch(ns, thread, kind),
            Some(Record::Lost(count)) => self.lost_records += count,
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

    fn add_switch(&mut self, ns: u64, thread: u32, kind: SwitchKind) {
        match kind {
            SwitchKind::Out => {
                self.waiting_threads.entry(thread).or_default().began_ns = Some(ns);
            }
            SwitchKind::Preempted => {
                self.waiting_threads.remove(&thread);
            }
            SwitchKind::In => {
                let Some(waiting) = self.waiting_threads.remove(&thread) else {
                    return;
                };
                let waited_ns = waiting.began_ns.map_or(0, |began| ns.saturating_sub(began));
                self.waited_ns += waited_ns;
                if let (Some((frames, waits)), Some(_)) = (waiting.sampled, waiting.began_ns) {
                    let weight = waits * waited_ns as f64 * 1e-9;
                    self.folded.add(frames, weight);
                }
            }
        }
    }

    /// Returns the frames of a sample, the outermost first.
    fn frames(&mut self, sample: &Sample<'_>) -> Vec<Frame> {
        let process = sample.process;
        let code = self.code_by_process.entry(process).or_default();
        let names = &mut self.resolver.names;
        if self.searched_processes.insert(process) && !names.read_map_file(process, &self.map_files)
        {
            let interpreters = code.paths().filter(|path| is_python(path));
            self.unnamed_interpreters
                .extend(interpreters.map(str::to_owned));
        }
        code.add_trampolines(|low, high| names.has_generated_code(process, low, high));
        let captured = sample.captured.as_ref();
        let mut frames = captured.map_or_else(Vec::new, |captured| {
            self.resolver.frames(process, code, captured)
        });
        if let Some(entry_point) = self.kernel_functions.entry_point(&sample.kernel_chain) {
            self.has_unnamed_entry_point |= self.kernel_functions.is_empty();
            frames.push(Frame::new(&entry_point, "kernel", Kind::Kernel));
        }
        frames
    }

    pub fn finish(mut self) -> ReplayResult {
        for process in self.code_by_process.keys() {
            // Reading removes the map file, even if the process has no samples.
            self.resolver.names.read_map_file(*process, &self.map_files);
        }
        let names = &self.resolver.names;
        let mut unseen = names.ignored_map_file_remarks(&self.map_files);
        if self.lost_records > 0 {
            unseen.push(format!(
                "{} records are missing, because they came too fast to be read",
                self.lost_records
            ));
        }
        unseen.extend(self.resolver.cut_stacks_remark(self.samples));
        if self.has_unnamed_entry_point {
            unseen.push(
                "the system calls in the stacks have no names: kernel.kptr_restrict hides the \
                 names of the kernel's functions"
                    .to_owned(),
            );
        }
        for interpreter in self.unnamed_interpreters {
            unseen.push(format!(
                "Python functions of {interpreter} have no names: it wrote no map file (CPython \
                 3.12 and later write a map file with PYTHONPERFSUPPORT=1)"
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
        let kernel_chain = (0..reader.u64()?)
            .map(|_| reader.u64())
            .collect::<Option<_>>()?;
        let mut sample = Self {
            process,
            thread,
            period,
            kernel_chain,
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
        let size = reader.u64()?;
        // The spool has removed the unfilled part of the stack. The last 8 bytes are its length.
        let stack = if size == 0 { &[] } else { reader.but_last(8)? };
        sample.captured = Some(RawStack {
            instruction,
            stack_pointer,
            frame_pointer,
            link,
            stack,
        });
        Some(sample)
    }
}
