//! Reads the lines of `/proc/PID/maps`.

/// A range of addresses that is mapped in a process.
pub struct Map<'a> {
    pub start: u64,
    pub end: u64,
    pub is_executable: bool,
    pub file_offset: u64,
    pub path: &'a str,
}

impl<'a> Map<'a> {
    /// Returns the mappings in the text of a maps file. Lines of another format are left out.
    pub fn all(text: &'a str) -> impl Iterator<Item = Self> {
        text.lines().filter_map(Self::read)
    }

    fn read(line: &'a str) -> Option<Self> {
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        Some(Self {
            start: number(start)?,
            end: number(end)?,
            is_executable: fields.next()?.contains('x'),
            file_offset: number(fields.next()?)?,
            path: fields.nth(2).unwrap_or("").trim_start(),
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
            (map.start, map.end, map.file_offset),
            (0x7f00, 0x7f10, 0x2000)
        );
        assert_eq!(map.path, "/lib/a b.so");
        assert_eq!(Map::read("1-2 rw-p 0 0:0 0").expect("a line").path, "");
    }
}
