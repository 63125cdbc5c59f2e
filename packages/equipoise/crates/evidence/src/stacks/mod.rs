//! Turns raw stacks (registers and bytes) into the names of functions.
//!
//! - `mapped_code`: the code in the memory of a process, and the unwinding of a stack.
//! - `image`: a program or library, with the sections for unwinding.
//! - `names`: the functions at an address; `tables` has symbols, `map_file` has generated code.
//! - `kernel`: the entry point of the kernel in a call chain.
//! - `folded`: the sum of equal stacks.

pub mod folded;
pub mod image;
pub mod kernel;
pub mod map_file;
pub mod mapped_code;
pub mod names;
pub mod tables;

use folded::Frame;
use mapped_code::{Cache, Images, MappedCode, RawStack};
use names::Names;

/// Finds the functions of raw stacks, and counts the stacks that cannot be unwound completely.
#[derive(Default)]
pub struct Resolver {
    pub images: Images,
    pub names: Names,
    cache: Cache,
    /// Number of stacks whose outermost frame was not reached.
    cut_count: u64,
}

impl Resolver {
    /// Returns the frames of a stack, the outermost first.
    pub fn frames(&mut self, process: u32, code: &MappedCode, stack: &RawStack<'_>) -> Vec<Frame> {
        let unwound = code.unwind(&mut self.cache, stack);
        self.cut_count += u64::from(!unwound.is_complete);
        let mut frames = Vec::new();
        for address in unwound.addresses.iter().rev() {
            frames.extend_from_slice(&self.names.frames_at(process, code, *address));
        }
        frames
    }

    /// Returns a remark on the stacks without their outermost frames, if there are any.
    pub fn cut_stacks_remark(&self, samples: u64) -> Option<String> {
        (self.cut_count > 0).then(|| {
            format!(
                "the outer frames of {} of {samples} stacks are missing: the stack was deeper than \
                 the copied part, or its code has no unwind information",
                self.cut_count
            )
        })
    }
}
