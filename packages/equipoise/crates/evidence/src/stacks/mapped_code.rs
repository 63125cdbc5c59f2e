//! The code that is mapped in the address space of a process, and the unwinding of its stacks.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use framehop::{CacheNative, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder, UnwinderNative};

use crate::stacks::image::{Bytes, Image, trampolines};

/// Largest number of frames of a stack. The outer frames of deeper stacks are left out.
const MAX_FRAMES: usize = 512;

/// The programs and libraries of all processes, each read once.
#[derive(Default)]
pub struct Images(HashMap<String, Option<Rc<Image>>>);

impl Images {
    fn get(&mut self, path: &str) -> Option<Rc<Image>> {
        let image = self.0.entry(path.to_owned());
        image
            .or_insert_with(|| Image::read(path).map(Rc::new))
            .clone()
    }
}

/// A mapping of code from a file.
#[derive(Debug, Clone)]
pub struct CodeMapping {
    pub start: u64,
    pub end: u64,
    /// Address in memory minus ELF address (the address that the file states for the same code).
    pub bias: u64,
    pub path: Rc<str>,
    /// Whether the file could be read.
    pub is_readable: bool,
}

/// The mapped code of a process.
#[derive(Default, Clone)]
pub struct MappedCode {
    mappings: Vec<CodeMapping>,
    /// Code without a file, which may be trampolines (`add_trampolines`).
    code_without_file: Vec<Range<u64>>,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
}

/// Cache of the unwinder, for the stacks of all processes.
pub type Cache = CacheNative<MayAllocateDuringUnwind>;

/// The registers of a thread, and the bytes of its stack above the stack pointer.
pub struct RawStack<'a> {
    pub instruction: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// On `AArch64`, the return address of the innermost frame.
    #[cfg_attr(not(target_arch = "aarch64"), expect(dead_code))]
    pub link: u64,
    pub stack: &'a [u8],
}

/// The addresses of a stack's frames, as far as they could be found.
pub struct UnwoundStack {
    /// Addresses of the frames, the innermost first. Outer addresses are inside call instructions.
    pub addresses: Vec<u64>,
    /// Whether the outermost frame was reached.
    pub is_complete: bool,
}

impl MappedCode {
    /// Adds a mapping of code, which replaces earlier mappings at its addresses.
    pub fn add(&mut self, images: &mut Images, path: &str, start: u64, length: u64, offset: u64) {
        let end = start.saturating_add(length);
        self.mappings
            .retain(|old| old.end <= start || end <= old.start);
        let address_and_image = images
            .get(path)
            .and_then(|image| Some((image.elf_address(offset)?, image)));
        let elf_address = address_and_image
            .as_ref()
            .map_or(0, |(address, _)| *address);
        let bias = start.wrapping_sub(elf_address);
        if let Some((_, image)) = &address_and_image {
            let module = image.module(path, start..end, bias);
            self.unwinder.remove_module(start);
            self.unwinder.add_module(module);
        } else {
            self.code_without_file.push(start..end);
        }
        self.mappings.push(CodeMapping {
            start,
            end,
            bias,
            path: Rc::from(path),
            is_readable: address_and_image.is_some(),
        });
    }

    /// Adds each range of code without a file as trampolines, if `is_generated(start, end)`.
    pub fn add_trampolines(&mut self, is_generated: impl Fn(u64, u64) -> bool) {
        for range in std::mem::take(&mut self.code_without_file) {
            if is_generated(range.start, range.end) {
                self.unwinder.add_module(trampolines(range));
            }
        }
    }

    pub fn mapping_at(&self, address: u64) -> Option<&CodeMapping> {
        let mut mappings = self.mappings.iter();
        mappings.find(|mapping| (mapping.start..mapping.end).contains(&address))
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.mappings.iter().map(|mapping| &*mapping.path)
    }

    /// Unwinds a stack as far as possible.
    pub fn unwind(&self, cache: &mut Cache, captured: &RawStack<'_>) -> UnwoundStack {
        let mut read = |address: u64| {
            let offset = address.checked_sub(captured.stack_pointer).ok_or(())?;
            let offset = usize::try_from(offset).map_err(|_| ())?;
            let bytes = captured.stack.get(offset..offset + 8).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let mut frames =
            self.unwinder
                .iter_frames(captured.instruction, registers(captured), cache, &mut read);
        let mut addresses = Vec::new();
        let is_complete = loop {
            match frames.next() {
                Ok(Some(frame)) if addresses.len() < MAX_FRAMES => {
                    addresses.push(frame.address_for_lookup());
                }
                Ok(None) => break true,
                Ok(Some(_)) | Err(_) => break false,
            }
        };
        UnwoundStack {
            addresses,
            is_complete,
        }
    }
}

fn registers(captured: &RawStack<'_>) -> UnwindRegsNative {
    #[cfg(target_arch = "x86_64")]
    let code_address = captured.instruction;
    #[cfg(target_arch = "aarch64")]
    let code_address = captured.link;
    UnwindRegsNative::new(code_address, captured.stack_pointer, captured.frame_pointer)
}
