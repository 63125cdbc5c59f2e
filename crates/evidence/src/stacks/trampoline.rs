//! How to unwind out of the code that `CPython` makes for each Python function.
//!
//! Its trampolines have no unwind information in a file. On x86-64 each is a call with 8 bytes
//! pushed before it (`Python/asm_trampoline.S`), so that one rule holds wherever a call returns
//! to; on `AArch64` they keep a frame pointer, which needs no rule.

use std::ops::Range;

use framehop::{ExplicitModuleSectionInfo, Module};

use crate::stacks::image::Bytes;

/// The trampolines in a range of addresses.
pub fn module(range: Range<u64>) -> Module<Bytes> {
    let sections = if cfg!(target_arch = "x86_64") {
        let rule = rule(&range);
        ExplicitModuleSectionInfo {
            // Places are told from the start, and have 32 bits.
            base_svma: range.start,
            // It refers to nothing by its own place.
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
    // Common part: its length, that it is one, version, no augmentation, alignments, registers.
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
