//! Reads a program or library: the addresses of its code, and the sections for unwinding stacks.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module};
use object::{Object, ObjectSection, ObjectSegment};

use crate::maps::Map;
use crate::regular_file;

/// Bytes of a section for the unwinder.
pub type Bytes = Arc<[u8]>;

/// Name of the library that the kernel maps into every process.
const KERNEL_LIBRARY: &str = "[vdso]";
pub const PAGE_MASK: u64 = 4095;

/// The code of a program or library.
#[derive(Debug)]
pub struct Image {
    /// Segments of code: the range of offsets in the file, and the ELF address of the first byte.
    segments: Vec<(Range<u64>, u64)>,
    sections: ExplicitModuleSectionInfo<Bytes>,
}

impl Image {
    /// Reads a file; `None` if it no longer exists or is not a program or library.
    pub fn read(path: &str) -> Option<Self> {
        let bytes = if path == KERNEL_LIBRARY {
            kernel_library()?
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

    /// Returns the ELF address of the byte at a file offset; `None` outside the pages with code.
    pub fn elf_address(&self, file_offset: u64) -> Option<u64> {
        self.segments
            .iter()
            .find(|(range, _)| (range.start & !PAGE_MASK..range.end).contains(&file_offset))
            .map(|(range, address)| address.wrapping_add(file_offset).wrapping_sub(range.start))
    }

    /// Returns the unwinder's module for a mapping. Its addresses are ELF addresses plus `bias`.
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
fn kernel_library() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let map = Map::all(&maps).find(|map| map.path == KERNEL_LIBRARY)?;
    let start = std::ptr::with_exposed_provenance::<u8>(usize::try_from(map.start).ok()?);
    let length = usize::try_from(map.end - map.start).ok()?;
    // SAFETY: the kernel maps it for reading as long as the process lives.
    Some(unsafe { std::slice::from_raw_parts(start, length) }.to_vec())
}

/// Returns the unwinder's module for the trampolines of `CPython` in a range of addresses. A
/// trampoline is the code that the interpreter generates for a Python function.
///
/// Trampolines have no unwind information in a file. On x86-64, each pushes 8 bytes and makes a
/// call (`Python/asm_trampoline.S`), so one rule suffices. On `AArch64` they keep a frame pointer.
pub fn trampolines(range: Range<u64>) -> Module<Bytes> {
    let sections = if cfg!(target_arch = "x86_64") {
        let unwind_section = unwind_section(&range);
        ExplicitModuleSectionInfo {
            // Addresses in the section have 32 bits and are relative to the start.
            base_svma: range.start,
            // No address in the section is relative to the section itself.
            eh_frame_svma: Some(0..unwind_section.len() as u64),
            eh_frame: Some(Bytes::from(unwind_section)),
            ..Default::default()
        }
    } else {
        ExplicitModuleSectionInfo::default()
    };
    let start = range.start;
    Module::new("trampolines".to_owned(), range, start, sections)
}

/// Returns an `.eh_frame` section with a single rule (DWARF 5, 6.4.1, and Linux Standard Base).
fn unwind_section(range: &Range<u64>) -> Vec<u8> {
    const STACK_POINTER: u8 = 7;
    const RETURN_ADDRESS: u8 = 16;
    const DATA_ALIGNMENT_MINUS_8: u8 = 0x78;
    const DEF_CFA: u8 = 0x0C;
    const OFFSET: u8 = 0x80;
    let mut section = Vec::new();
    // Common part (CIE): length, mark of a CIE, version, no augmentation, alignments, register.
    let common = [1, 0, 1, DATA_ALIGNMENT_MINUS_8, RETURN_ADDRESS];
    // The frame ends 16 bytes above the stack pointer, and its last 8 bytes are the return address.
    let rules = [DEF_CFA, STACK_POINTER, 16, OFFSET | RETURN_ADDRESS, 1, 0, 0];
    section.extend_from_slice(&16_u32.to_ne_bytes());
    section.extend_from_slice(&0_u32.to_ne_bytes());
    section.extend_from_slice(&common);
    section.extend_from_slice(&rules);
    // Part for the addresses (FDE): length, distance back to the CIE, first address, length.
    section.extend_from_slice(&20_u32.to_ne_bytes());
    section.extend_from_slice(&24_u32.to_ne_bytes());
    section.extend_from_slice(&range.start.to_ne_bytes());
    section.extend_from_slice(&(range.end - range.start).to_ne_bytes());
    section.extend_from_slice(&0_u32.to_ne_bytes());
    section
}
