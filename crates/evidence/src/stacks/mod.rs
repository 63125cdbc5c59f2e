//! Stacks: from registers and bytes of a stack to the names of functions.

pub mod folded;
pub mod image;
pub mod kernel;
pub mod map_file;
pub mod names;
pub mod space;
pub mod tables;
