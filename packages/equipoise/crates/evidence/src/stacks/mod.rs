//! Stacks: from registers and bytes of a stack to the names of functions.

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
    /// Stacks whose outermost frame was not reached.
    cut: u64,
}

impl Resolver {
    /// Returns the functions of a stack, the outermost first.
    pub fn frames(&mut self, process: u32, space: &Space, captured: &Captured<'_>) -> Vec<Frame> {
        let unwound = space.unwind(&mut self.cache, captured);
        self.cut += u64::from(!unwound.whole);
        let mut frames = Vec::new();
        for address in unwound.addresses.iter().rev() {
            frames.extend_from_slice(&self.names.of(process, space, *address));
        }
        frames
    }

    /// Returns a remark on the stacks that were cut, if there are any.
    pub fn cut_stacks(&self, samples: u64) -> Option<String> {
        (self.cut > 0).then(|| {
            format!(
                "the outer frames of {} of {samples} stacks: deeper than was copied, or code \
                 without unwind information",
                self.cut
            )
        })
    }
}
