//! Futexes on which threads waited, with the place of each.

use std::collections::HashMap;
use std::fs;

use object::SymbolKind;
use serde::Serialize;

use crate::calls::event::{Caller, in_seconds};
use crate::maps::Map;
use crate::stacks::tables::Tables;

/// Number and time of the waits on the word at one address of one process.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Waits {
    #[serde(rename = "waits")]
    pub count: u64,
    #[serde(rename = "seconds", serialize_with = "in_seconds")]
    pub ns: u64,
}

/// Every futex that was waited on.
#[derive(Debug)]
pub struct Locks {
    waits: HashMap<(u32, u64), Waits>,
    places: HashMap<(u32, u64), String>,
    variables: Tables,
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            waits: HashMap::new(),
            places: HashMap::new(),
            variables: Tables::new(SymbolKind::Data),
        }
    }
}

/// `FUTEX_WAIT`, `FUTEX_WAIT_BITSET`, `FUTEX_LOCK_PI`, …, without the private and clock flags.
const OPERATIONS_THAT_WAIT: [u64; 5] = [0, 6, 9, 11, 13];
const OPERATION_MASK: u64 = 0x7F;

impl Locks {
    /// Whether a futex call with this operation waits.
    pub fn is_wait(operation: u64) -> bool {
        OPERATIONS_THAT_WAIT.contains(&(operation & OPERATION_MASK))
    }

    /// Looks up the place of the word, while the process exists.
    pub fn began(&mut self, caller: Caller, address: u64) {
        let place = self.places.entry((caller.process, address));
        place.or_insert_with(|| place_of(&mut self.variables, caller, address));
    }

    /// Adds one wait.
    pub fn ended(&mut self, process: u32, address: u64, ns: u64) {
        let waits = self.waits.entry((process, address)).or_default();
        waits.count += 1;
        waits.ns += ns;
    }

    /// Waits by place: the same place of several processes is added up.
    pub fn by_place(&self) -> HashMap<String, Waits> {
        let mut sums: HashMap<String, Waits> = HashMap::new();
        for (key, waits) in &self.waits {
            let place = self.places.get(key).map_or("(unknown)", String::as_str);
            let sum = sums.entry(place.to_owned()).or_default();
            sum.count += waits.count;
            sum.ns += waits.ns;
        }
        sums
    }
}

/// "variable in file" or "address in mapping".
fn place_of(variables: &mut Tables, caller: Caller, address: u64) -> String {
    let maps = caller.folders().into_iter().find_map(|folder| {
        let maps = fs::read_to_string(format!("{folder}/maps")).ok()?;
        // The maps of an ended thread of a living process are empty.
        (!maps.is_empty()).then_some(maps)
    });
    let Some(maps) = maps else {
        return "(the process had ended)".to_owned();
    };
    let mut file = String::new();
    for map in Map::all(&maps) {
        if map.path.starts_with('/') && map.file_offset == 0 {
            // The memory behind a file's last part has no name, but is next to it.
            map.path.clone_into(&mut file);
        }
        if (map.low..map.high).contains(&address) {
            if map.path.starts_with('[') {
                return map.path.to_owned();
            }
            let base = Map::all(&maps).find(|map| map.path == file);
            let distance = base.map(|base| address.wrapping_sub(base.low));
            let name = distance.and_then(|distance| variables.find_behind_first(&file, distance));
            return match (name, map.path) {
                (Some(name), _) => format!("{name} in {file}"),
                (None, "") => "anonymous memory".to_owned(),
                (None, path) => path.to_owned(),
            };
        }
    }
    "(the process had gone on)".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_operations_are_told_from_waking_ones() {
        const PRIVATE: u64 = 128;
        assert!(Locks::is_wait(PRIVATE));
        assert!(Locks::is_wait(9 | PRIVATE | 256));
        assert!(!Locks::is_wait(1 | PRIVATE));
    }

    #[test]
    fn waits_of_one_place_are_added_up() {
        let mut locks = Locks::default();
        locks.ended(1, 16, 5);
        locks.ended(2, 16, 7);
        let sum = locks.by_place()["(unknown)"];
        assert_eq!((sum.count, sum.ns), (2, 12));
    }
}
