//! Finds symbols (variables and exported functions) in the symbol tables of programs and libraries.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::regular_file;
use crate::stacks::image::PAGE_MASK;

/// The symbols of one kind in all files.
#[derive(Debug)]
pub struct SymbolTables {
    kind: SymbolKind,
    files: HashMap<String, Table>,
}

/// The symbols of one file, sorted by address.
#[derive(Debug, Default)]
struct Table {
    /// ELF address of the first page.
    base: u64,
    symbols: Vec<Symbol>,
}

#[derive(Debug)]
struct Symbol {
    address: u64,
    bytes: u64,
    name: String,
}

impl SymbolTables {
    pub fn new(kind: SymbolKind) -> Self {
        Self {
            kind,
            files: HashMap::new(),
        }
    }

    /// Returns the symbol at an ELF address of a file.
    pub fn find(&mut self, path: &str, elf_address: u64) -> Option<&str> {
        self.table(path).find(elf_address)
    }

    /// Returns the symbol at a distance from the first page of the file in memory.
    pub fn find_from_base(&mut self, path: &str, distance: u64) -> Option<&str> {
        let table = self.table(path);
        table.find(table.base.wrapping_add(distance))
    }

    fn table(&mut self, path: &str) -> &Table {
        let kind = self.kind;
        self.files
            .entry(path.to_owned())
            .or_insert_with(|| Table::read(path, kind).unwrap_or_default())
    }
}

impl Table {
    fn read(path: &str, kind: SymbolKind) -> Option<Self> {
        let bytes = regular_file::read(Path::new(path)).ok()?;
        let file = object::File::parse(bytes.as_slice()).ok()?;
        let lowest = file.segments().map(|segment| segment.address()).min()?;
        let mut symbols: Vec<Symbol> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == kind && symbol.is_definition() && symbol.size() > 0)
            .filter_map(|symbol| {
                Some(Symbol {
                    address: symbol.address(),
                    bytes: symbol.size(),
                    name: symbol.name().ok()?.to_owned(),
                })
            })
            .collect();
        // If an address has several names, `find` returns the last. So names that begin with an
        // underscore come first, and the shortest of the other names comes last.
        symbols.sort_by_key(|symbol| {
            let is_public = !symbol.name.starts_with('_');
            (symbol.address, is_public, Reverse(symbol.name.len()))
        });
        Some(Self {
            base: lowest & !PAGE_MASK,
            symbols,
        })
    }

    fn find(&self, elf_address: u64) -> Option<&str> {
        let symbols = &self.symbols;
        let index = symbols.partition_point(|symbol| symbol.address <= elf_address);
        let symbol = symbols.get(index.checked_sub(1)?)?;
        (elf_address - symbol.address < symbol.bytes).then_some(symbol.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_symbol_that_contains_it() {
        let symbol = |address, bytes, name: &str| Symbol {
            address,
            bytes,
            name: name.to_owned(),
        };
        let table = Table {
            base: 0,
            symbols: vec![symbol(100, 8, "gate"), symbol(200, 40, "door")],
        };
        assert_eq!(table.find(107), Some("gate"));
        assert_eq!(table.find(108), None);
        assert_eq!(table.find(239), Some("door"));
        assert_eq!(table.find(99), None);
    }
}
