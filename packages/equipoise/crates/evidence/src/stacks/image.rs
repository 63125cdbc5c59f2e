//! A program or library as a file: where its parts go in memory, and how to unwind out of it.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module};
use object::{Object, ObjectSection, ObjectSegment};

use crate::maps::Map;
use crate::regular_file;

/// Bytes of a section that the unwinder reads.
pub type Bytes = Arc<[u8]>;

/// The kernel's own library in every process.
const KERNEL_LIBRARY: &str = "[vdso]";
const PAGE_MASK: u64 = 4095;

/// One file that was mapped.
#[derive(Debug)]
pub struct Image {
    /// Code: offsets in the file and the address stated for the first.
    segments: Vec<(Range<u64>, u64)>,
    sections: ExplicitModuleSectionInfo<Bytes>,
}

impl Image {
    /// Reads the file; `None` if it does not exist any more or is not a program or library.
    pub fn read(path: &str) -> Option<Self> {
        let bytes = if path == KERNEL_LIBRARY {
            own_kernel_library()?
        } else {
            regular_file::read(Path::new(path)).ok()?
        };
        let file = object::File::parse(bytes.as_slice()).ok()?;
        let segments = file
            .segments()
            .filter(is_code)
            .map(|segment| {
                let (offset, length) = segment.file_range();
                (offset..offset + length, segment.address())
            })
            .collect();
        Some(Self {
            segments,
            sections: sections(&file),
        })
    }

    /// The address that the file states for its byte at the offset from which code was mapped.
    ///
    /// Whole pages are mapped: the code may begin after that offset.
    pub fn stated_address(&self, file_offset: u64) -> Option<u64> {
        self.segments
            .iter()
            .find(|(range, _)| (range.start & !PAGE_MASK..range.end).contains(&file_offset))
            .map(|(range, address)| address.wrapping_add(file_offset).wrapping_sub(range.start))
    }

    /// The same as a module of a process in which it was mapped so far from its stated addresses.
    pub fn module(&self, path: &str, mapped: Range<u64>, bias: u64) -> Module<Bytes> {
        Module::new(path.to_owned(), mapped, bias, self.sections.clone())
    }
}

fn is_code(segment: &object::Segment<'_, '_>) -> bool {
    segment.permissions().executable()
}

fn sections(file: &object::File<'_>) -> ExplicitModuleSectionInfo<Bytes> {
    let data = |name| {
        let section = file.section_by_name(name)?;
        Some(Bytes::from(section.uncompressed_data().ok()?.as_ref()))
    };
    let range = |name| {
        let section = file.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        text: data(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        debug_frame: data(".debug_frame"),
        ..Default::default()
    }
}

/// Reads the kernel's library, which is the same in every process.
fn own_kernel_library() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let map = Map::all(&maps).find(|map| map.path == KERNEL_LIBRARY)?;
    let start = std::ptr::with_exposed_provenance::<u8>(usize::try_from(map.low).ok()?);
    let length = usize::try_from(map.high - map.low).ok()?;
    // SAFETY: the kernel maps it for reading as long as the process lives.
    Some(unsafe { std::slice::from_raw_parts(start, length) }.to_vec())
}

/// Returns a module for a range of addresses with the trampolines of `CPython`: the code that it makes
/// for each Python function.
///
/// Trampolines have no unwind information in a file. On x86-64 each is a call with 8 bytes pushed before
/// it (`Python/asm_trampoline.S`), so that one rule holds at every return address. On `AArch64` they
/// keep a frame pointer, which needs no rule.
pub fn trampolines(range: Range<u64>) -> Module<Bytes> {
    let sections = if cfg!(target_arch = "x86_64") {
        let rule = rule(&range);
        ExplicitModuleSectionInfo {
            // Places are relative to the start, and have 32 bits.
            base_svma: range.start,
            // The section has no reference that is relative to its own place.
            eh_frame_svma: Some(0..rule.len() as u64),
            eh_frame: Some(Bytes::from(rule)),
            ..Default::default()
        }
    } else {
        ExplicitModuleSectionInfo::default()
    };
    let start = range.start;
    Module::new("trampolines".to_owned(), range, start, sections)
}

/// An `.eh_frame` section (DWARF 5, 6.4.1, as the LSB changes it) with one rule for all.
fn rule(range: &Range<u64>) -> Vec<u8> {
    const STACK_POINTER: u8 = 7;
    const RETURN_ADDRESS: u8 = 16;
    const MINUS_8: u8 = 0x78;
    const DEF_CFA: u8 = 0x0C;
    const OFFSET: u8 = 0x80;
    let mut section = Vec::new();
    // Common part (CIE): length, CIE mark, version, no augmentation, alignments, register.
    let common = [1, 0, 1, MINUS_8, RETURN_ADDRESS];
    let rules = [DEF_CFA, STACK_POINTER, 16, OFFSET | RETURN_ADDRESS, 1, 0, 0];
    section.extend_from_slice(&16_u32.to_ne_bytes());
    section.extend_from_slice(&0_u32.to_ne_bytes());
    section.extend_from_slice(&common);
    section.extend_from_slice(&rules);
    // For these addresses: its length, how far back the common part is, from where, how much.
    section.extend_from_slice(&20_u32.to_ne_bytes());
    section.extend_from_slice(&24_u32.to_ne_bytes());
    section.extend_from_slice(&range.start.to_ne_bytes());
    section.extend_from_slice(&(range.end - range.start).to_ne_bytes());
    // The end.
    section.extend_from_slice(&0_u32.to_ne_bytes());
    section
}
