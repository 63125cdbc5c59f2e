//! Which intervention this process was given.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

const VARIABLE: &CStr = c"EQUIPOISE_INTERVENTION";

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Chosen {
    /// The sham, and whatever word is not known.
    Nothing = 1,
    QuickSync,
    NoSleep,
    LargeBuffers,
    LateFlush,
    KeepPages,
    KeepCache,
    HugeMappings,
}

const ALL: [Chosen; 8] = [
    Chosen::Nothing,
    Chosen::QuickSync,
    Chosen::NoSleep,
    Chosen::LargeBuffers,
    Chosen::LateFlush,
    Chosen::KeepPages,
    Chosen::KeepCache,
    Chosen::HugeMappings,
];

impl Chosen {
    fn named(word: &[u8]) -> Self {
        match word {
            b"quick_sync" => Self::QuickSync,
            b"no_sleep" => Self::NoSleep,
            b"large_buffers" => Self::LargeBuffers,
            b"late_flush" => Self::LateFlush,
            b"keep_pages" => Self::KeepPages,
            b"keep_cache" => Self::KeepCache,
            b"huge_mappings" => Self::HugeMappings,
            _ => Self::Nothing,
        }
    }

    /// Whether streams have large buffers.
    pub fn has_large_buffers(self) -> bool {
        matches!(self, Self::LargeBuffers | Self::LateFlush)
    }
}

/// Read once, as a program may change its environment.
#[inline]
pub fn chosen() -> Chosen {
    static CHOSEN: AtomicU8 = AtomicU8::new(0);
    let known = CHOSEN.load(Ordering::Relaxed);
    if let Some(chosen) = ALL.into_iter().find(|one| *one as u8 == known) {
        return chosen;
    }
    let chosen = read();
    CHOSEN.store(chosen as u8, Ordering::Relaxed);
    chosen
}

#[cold]
fn read() -> Chosen {
    // SAFETY: the name ends in a zero byte.
    let word = unsafe { libc::getenv(VARIABLE.as_ptr()) };
    if word.is_null() {
        return Chosen::Nothing;
    }
    // SAFETY: a value of the environment ends in a zero byte.
    Chosen::named(unsafe { CStr::from_ptr(word) }.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_known_changes_nothing() {
        assert_eq!(Chosen::named(b"quick_sync"), Chosen::QuickSync);
        assert_eq!(Chosen::named(b"nothing"), Chosen::Nothing);
        assert_eq!(Chosen::named(b"quick_sync "), Chosen::Nothing);
        assert_eq!(chosen(), Chosen::Nothing);
    }
}
