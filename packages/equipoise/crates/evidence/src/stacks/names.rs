//! Finds the functions at an address, by symbols, debug information, and map files of interpreters.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use object::SymbolKind;

use crate::stacks::folded::{Frame, Kind};
use crate::stacks::map_file::MapFiles;
use crate::stacks::mapped_code::MappedCode;
use crate::stacks::tables::SymbolTables;

/// Finds the functions at addresses, and caches them for addresses in files.
pub struct Names {
    symbolizer: Symbolizer,
    /// Tables of exported functions, which even stripped files have.
    exported: SymbolTables,
    frames_by_address: HashMap<(Rc<str>, u64), Rc<[Frame]>>,
    /// Functions that each process generated, by the address of their first byte.
    generated: HashMap<u32, BTreeMap<u64, MapEntry>>,
    /// Processes whose map files were ignored, for each reason.
    ignored: BTreeMap<String, BTreeSet<u32>>,
}

/// An entry of a map file: a function that an interpreter has generated.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MapEntry {
    end: u64,
    name: String,
}

/// Prefix of Python functions in `CPython`'s map files: `py::name:file`.
const PYTHON_PREFIX: &str = "py::";

impl Default for Names {
    fn default() -> Self {
        Self {
            symbolizer: Symbolizer::new(),
            exported: SymbolTables::new(SymbolKind::Text),
            frames_by_address: HashMap::new(),
            generated: HashMap::new(),
            ignored: BTreeMap::new(),
        }
    }
}

impl Names {
    /// Reads and removes the map file of a process; returns whether the file existed.
    pub fn read_map_file(&mut self, process: u32, files: &MapFiles) -> bool {
        match files.take(process) {
            Ok(None) => false,
            Ok(Some(text)) => {
                let entries = text.lines().filter_map(parse_line);
                self.generated.entry(process).or_default().extend(entries);
                true
            }
            Err(reason) => {
                self.ignored.entry(reason).or_default().insert(process);
                true
            }
        }
    }

    /// Returns a remark for each reason why map files were ignored.
    pub fn ignored_map_file_remarks(&self, files: &MapFiles) -> Vec<String> {
        let remark = |(reason, processes): (&String, &BTreeSet<u32>)| {
            let first_path = processes.first().map(|process| files.path(*process))?;
            let others = match processes.len() - 1 {
                0 => String::new(),
                count => format!(" and of {count} other processes"),
            };
            let first_path = first_path.display();
            Some(format!(
                "names of code made at run time, in {first_path}{others}, are missing: {reason}"
            ))
        };
        self.ignored.iter().filter_map(remark).collect()
    }

    /// Returns the function at an address of a process, then the functions inlined there.
    pub fn frames_at(&mut self, process: u32, code: &MappedCode, address: u64) -> Rc<[Frame]> {
        if let Some(name) = self.generated_name(process, address) {
            let python = name.strip_prefix(PYTHON_PREFIX);
            let (module, kind) = match python {
                Some(_) => ("python", Kind::Python),
                None => ("generated code", Kind::Generated),
            };
            return Rc::from([Frame::new(python.unwrap_or(name), module, kind)]);
        }
        let Some(mapping) = code.mapping_at(address) else {
            return Rc::from([Frame::unknown("memory without a file")]);
        };
        if !mapping.is_readable {
            return Rc::from([Frame::unknown(file_name(&mapping.path))]);
        }
        let elf_address = address.wrapping_sub(mapping.bias);
        let key = (Rc::clone(&mapping.path), elf_address);
        if let Some(frames) = self.frames_by_address.get(&key) {
            return Rc::clone(frames);
        }
        let frames = self.frames_in_file(&mapping.path, elf_address);
        self.frames_by_address.insert(key, Rc::clone(&frames));
        frames
    }

    /// Returns whether the map file of a process lists code between two addresses.
    pub fn has_generated_code(&self, process: u32, low: u64, high: u64) -> bool {
        let entries = self.generated.get(&process);
        entries.is_some_and(|entries| entries.range(low..high).next().is_some())
    }

    fn generated_name(&self, process: u32, address: u64) -> Option<&str> {
        let entries = self.generated.get(&process)?;
        let (_, entry) = entries.range(..=address).next_back()?;
        (address < entry.end).then_some(entry.name.as_str())
    }

    fn frames_in_file(&mut self, path: &str, elf_address: u64) -> Rc<[Frame]> {
        let module = file_name(path);
        let source = Source::Elf(Elf::new(path));
        let address = Input::VirtOffset(elf_address);
        let Ok(Symbolized::Sym(symbol)) = self.symbolizer.symbolize_single(&source, address) else {
            let exported = self.exported.find(path, elf_address);
            let frame = exported.map(|name| Frame::new(name, module, Kind::User));
            return Rc::from([frame.unwrap_or_else(|| Frame::unknown(module))]);
        };
        let inlined = symbol.inlined.iter();
        let inlined = inlined.map(|function| Frame::new(&function.name, module, Kind::Inlined));
        let frame = Frame::new(&symbol.name, module, Kind::User);
        [frame].into_iter().chain(inlined).collect()
    }
}

fn parse_line(line: &str) -> Option<(u64, MapEntry)> {
    let mut fields = line.splitn(3, ' ');
    let start = u64::from_str_radix(fields.next()?, 16).ok()?;
    let length = u64::from_str_radix(fields.next()?, 16).ok()?;
    let name = fields.next()?.to_owned();
    let end = start.checked_add(length)?;
    Some((start, MapEntry { end, name }))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_map_file_is_read() {
        let (start, entry) = parse_line("7f00 b py::work:/tmp/a b.py").expect("a line");
        assert_eq!((start, entry.end), (0x7f00, 0x7f0b));
        assert_eq!(entry.name, "py::work:/tmp/a b.py");
    }

    #[test]
    fn an_address_in_no_file_is_unknown() {
        let frames = Names::default().frames_at(1, &MappedCode::default(), 4096);
        assert_eq!(frames[0].kind, Kind::Unknown);
    }
}
