//! Turns captured stacks (registers and bytes) into the names of functions.

pub mod folded;
pub mod image;
pub mod kernel;
pub mod map_file;
pub mod names;
pub mod space;
pub mod tables;

use folded::Frame;
use names::Names;
use space::{Cache, Captured, Images, Space};

/// Turns captured stacks into functions with names.
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
    pub fn frames(&mut self, process: u32, space: &Space, captured: &Captured<'_>) -> Vec<Frame> {
        let unwound = space.unwind(&mut self.cache, captured);
        self.cut_count += u64::from(!unwound.is_complete);
        let mut frames = Vec::new();
        for address in unwound.addresses.iter().rev() {
            frames.extend_from_slice(&self.names.frames_at(process, space, *address));
        }
        frames
    }

    /// Returns a remark on the stacks without their outermost frames, if there are any.
    pub fn cut_stacks(&self, samples: u64) -> Option<String> {
        (self.cut_count > 0).then(|| {
            format!(
                "the outer frames of {} of {samples} stacks: the stack was deeper than the copied \
                 part, or its code has no unwind information",
                self.cut_count
            )
        })
    }
}
