//! Lines of `/proc/PID/maps`.

/// A mapping of a process.
pub struct Map<'a> {
    pub low: u64,
    pub high: u64,
    pub is_executable: bool,
    pub file_offset: u64,
    pub path: &'a str,
}

impl<'a> Map<'a> {
    /// Returns the mappings that a text lists; lines of another form are left out.
    pub fn all(text: &'a str) -> impl Iterator<Item = Self> {
        text.lines().filter_map(Self::read)
    }

    fn read(line: &'a str) -> Option<Self> {
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let mut words = line.splitn(6, ' ');
        let (low, high) = words.next()?.split_once('-')?;
        Some(Self {
            low: number(low)?,
            high: number(high)?,
            is_executable: words.next()?.contains('x'),
            file_offset: number(words.next()?)?,
            path: words.nth(2).unwrap_or("").trim_start(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_is_read() {
        let line = "7f00-7f10 rw-p 00002000 08:01 123                        /lib/a b.so";
        let map = Map::read(line).expect("a line");
        assert_eq!(
            (map.low, map.high, map.file_offset),
            (0x7f00, 0x7f10, 0x2000)
        );
        assert_eq!(map.path, "/lib/a b.so");
        assert_eq!(Map::read("1-2 rw-p 0 0:0 0").expect("a line").path, "");
    }
}
