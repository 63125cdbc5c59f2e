//! The symbols that programs and libraries carry themselves: variables and exported functions.

use std::collections::HashMap;
use std::path::Path;

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::regular_file;

/// Symbols of one kind, by file.
#[derive(Debug)]
pub struct Tables {
    kind: SymbolKind,
    files: HashMap<String, Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// The address that the file states for its first byte.
    first: u64,
    symbols: Vec<Symbol>,
}

#[derive(Debug)]
struct Symbol {
    address: u64,
    bytes: u64,
    name: String,
}

impl Tables {
    pub fn new(kind: SymbolKind) -> Self {
        Self {
            kind,
            files: HashMap::new(),
        }
    }

    /// Returns the symbol at an address that the file states.
    pub fn find(&mut self, path: &str, stated: u64) -> Option<&str> {
        self.table(path).find(stated)
    }

    /// Returns the symbol at a distance from the first byte of the file in memory.
    pub fn find_behind_first(&mut self, path: &str, distance: u64) -> Option<&str> {
        let table = self.table(path);
        table.find(table.first.wrapping_add(distance))
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
        // If a thing has several names, the last one is found: the name without underscores.
        symbols.sort_by_key(|symbol| {
            let plain = !symbol.name.starts_with('_');
            (symbol.address, plain, std::cmp::Reverse(symbol.name.len()))
        });
        Some(Self {
            first: lowest & !0xFFF,
            symbols,
        })
    }

    fn find(&self, stated: u64) -> Option<&str> {
        let symbols = &self.symbols;
        let after = symbols.partition_point(|symbol| symbol.address <= stated);
        let symbol = symbols.get(after.checked_sub(1)?)?;
        (stated - symbol.address < symbol.bytes).then_some(symbol.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_symbol_that_holds_it() {
        let symbol = |address, bytes, name: &str| Symbol {
            address,
            bytes,
            name: name.to_owned(),
        };
        let table = Table {
            first: 0,
            symbols: vec![symbol(100, 8, "gate"), symbol(200, 40, "door")],
        };
        assert_eq!(table.find(107), Some("gate"));
        assert_eq!(table.find(108), None);
        assert_eq!(table.find(239), Some("door"));
        assert_eq!(table.find(99), None);
    }
}
