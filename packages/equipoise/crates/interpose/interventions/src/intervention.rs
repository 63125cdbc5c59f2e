//! The intervention of this process, named by the environment variable `EQUIPOISE_INTERVENTION`.

use std::sync::atomic::{AtomicU8, Ordering};

use equipoise_interpose::process;

/// A change of the program; `files`, `sleep`, `streams` and `pages` explain the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Intervention {
    /// No change; for the sham run, and for an unknown name.
    Nothing = 1,
    QuickSync,
    NoSleep,
    LargeBuffers,
    LateFlush,
    KeepPages,
    KeepCache,
    HugeMappings,
}

const NAMES: [(&[u8], Intervention); 8] = [
    (b"nothing", Intervention::Nothing),
    (b"quick_sync", Intervention::QuickSync),
    (b"no_sleep", Intervention::NoSleep),
    (b"large_buffers", Intervention::LargeBuffers),
    (b"late_flush", Intervention::LateFlush),
    (b"keep_pages", Intervention::KeepPages),
    (b"keep_cache", Intervention::KeepCache),
    (b"huge_mappings", Intervention::HugeMappings),
];

impl Intervention {
    fn from_name(name: &[u8]) -> Self {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map_or(Self::Nothing, |(_, intervention)| *intervention)
    }

    pub fn has_large_buffers(self) -> bool {
        matches!(self, Self::LargeBuffers | Self::LateFlush)
    }
}

/// Returns the intervention. The variable is read only once: a program may change its environment.
#[inline]
pub fn current() -> Intervention {
    /// Number of the intervention; 0 before the variable was read.
    static CURRENT: AtomicU8 = AtomicU8::new(0);
    let number = CURRENT.load(Ordering::Relaxed);
    if let Some((_, known)) = NAMES.iter().find(|(_, known)| *known as u8 == number) {
        return *known;
    }
    let intervention = read();
    CURRENT.store(intervention as u8, Ordering::Relaxed);
    intervention
}

#[cold]
fn read() -> Intervention {
    let name = process::variable(c"EQUIPOISE_INTERVENTION");
    name.map_or(Intervention::Nothing, |name| {
        Intervention::from_name(name.to_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_no_change() {
        let from_name = Intervention::from_name;
        assert_eq!(from_name(b"quick_sync"), Intervention::QuickSync);
        assert_eq!(from_name(b"nothing"), Intervention::Nothing);
        assert_eq!(from_name(b"quick_sync "), Intervention::Nothing);
        assert_eq!(current(), Intervention::Nothing);
    }
}
