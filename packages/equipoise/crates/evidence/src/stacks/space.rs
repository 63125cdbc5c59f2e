//! The mapped code in the address space of one observed process.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use framehop::{CacheNative, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder, UnwinderNative};

use crate::stacks::image::{Bytes, Image, trampolines};

/// Deeper stacks are cut.
const DEEPEST: usize = 512;

/// The images of all processes, each read once.
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

/// A part of a file that was mapped to be executed.
#[derive(Debug, Clone)]
pub struct Mapped {
    pub low: u64,
    pub high: u64,
    /// Difference between an address and the one that the file states.
    pub bias: u64,
    pub path: Rc<str>,
    /// Whether the file could be read.
    pub known: bool,
}

/// Addresses of code in one process.
#[derive(Default, Clone)]
pub struct Space {
    mapped: Vec<Mapped>,
    /// Code without a file that was not looked up yet.
    unnamed: Vec<Range<u64>>,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
}

/// Cache of the unwinder, for the stacks of all processes.
pub type Cache = CacheNative<MayAllocateDuringUnwind>;

/// Registers of a thread and the bytes above its stack pointer.
pub struct Captured<'a> {
    pub instruction: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// On `AArch64`, the return address of the innermost frame.
    #[cfg_attr(not(target_arch = "aarch64"), expect(dead_code))]
    pub link: u64,
    pub stack: &'a [u8],
}

/// The addresses of a stack.
pub struct Unwound {
    /// Innermost first, each inside the call that was made there.
    pub addresses: Vec<u64>,
    /// Whether the outermost frame was reached.
    pub whole: bool,
}

impl Space {
    /// Code was mapped, and replaces earlier mappings there.
    pub fn map(&mut self, images: &mut Images, path: &str, low: u64, length: u64, offset: u64) {
        let high = low.saturating_add(length);
        self.mapped.retain(|old| old.high <= low || high <= old.low);
        let stated = images
            .get(path)
            .and_then(|image| Some((image.stated_address(offset)?, image)));
        let bias = low.wrapping_sub(stated.as_ref().map_or(0, |(address, _)| *address));
        if let Some((_, image)) = &stated {
            let module = image.module(path, low..high, bias);
            self.unwinder.remove_module(low);
            self.unwinder.add_module(module);
        } else {
            self.unnamed.push(low..high);
        }
        self.mapped.push(Mapped {
            low,
            high,
            bias,
            path: Rc::from(path),
            known: stated.is_some(),
        });
    }

    /// Unwinds code without a file as trampolines of an interpreter, where `is_generated`.
    pub fn name_trampolines(&mut self, is_generated: impl Fn(u64, u64) -> bool) {
        for range in std::mem::take(&mut self.unnamed) {
            if is_generated(range.start, range.end) {
                self.unwinder.add_module(trampolines(range));
            }
        }
    }

    /// Returns the mapping at an address.
    pub fn find(&self, address: u64) -> Option<&Mapped> {
        let mut mapped = self.mapped.iter();
        mapped.find(|mapped| (mapped.low..mapped.high).contains(&address))
    }

    /// Every file that code was mapped from.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.mapped.iter().map(|mapped| &*mapped.path)
    }

    /// The stack, as far as it can be followed.
    pub fn unwind(&self, cache: &mut Cache, captured: &Captured<'_>) -> Unwound {
        let mut read = |address: u64| {
            let at = address.checked_sub(captured.stack_pointer).ok_or(())?;
            let at = usize::try_from(at).map_err(|_| ())?;
            let bytes = captured.stack.get(at..at + 8).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let mut frames =
            self.unwinder
                .iter_frames(captured.instruction, registers(captured), cache, &mut read);
        let mut addresses = Vec::new();
        let whole = loop {
            match frames.next() {
                Ok(Some(frame)) if addresses.len() < DEEPEST => {
                    addresses.push(frame.address_for_lookup());
                }
                Ok(None) => break true,
                Ok(Some(_)) | Err(_) => break false,
            }
        };
        Unwound { addresses, whole }
    }
}

fn registers(captured: &Captured<'_>) -> UnwindRegsNative {
    #[cfg(target_arch = "x86_64")]
    let first = captured.instruction;
    #[cfg(target_arch = "aarch64")]
    let first = captured.link;
    UnwindRegsNative::new(first, captured.stack_pointer, captured.frame_pointer)
}
