//! Adds up the waits on futexes (the locks of programs), with a name for the memory of each futex.

use std::collections::HashMap;
use std::fs;

use object::SymbolKind;
use serde::Serialize;

use crate::calls::event::{Caller, in_seconds};
use crate::maps::Map;
use crate::stacks::tables::SymbolTables;

/// Number and time of the waits on a futex.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Waits {
    #[serde(rename = "waits")]
    pub count: u64,
    #[serde(rename = "seconds", serialize_with = "in_seconds")]
    pub ns: u64,
}

/// All futexes that threads waited on, by process and address.
#[derive(Debug)]
pub struct Locks {
    waits: HashMap<(u32, u64), Waits>,
    names: HashMap<(u32, u64), String>,
    variables: SymbolTables,
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            waits: HashMap::new(),
            names: HashMap::new(),
            variables: SymbolTables::new(SymbolKind::Data),
        }
    }
}

/// Operations that wait: `FUTEX_WAIT`, `FUTEX_LOCK_PI`, `FUTEX_WAIT_BITSET`,
/// `FUTEX_WAIT_REQUEUE_PI` and `FUTEX_LOCK_PI2`.
const OPERATIONS_THAT_WAIT: [u64; 5] = [0, 6, 9, 11, 13];
/// Bits of the operation, without the flags.
const OPERATION_MASK: u64 = 0x7F;

impl Locks {
    /// Whether a futex call with this operation waits.
    pub fn is_wait(operation: u64) -> bool {
        OPERATIONS_THAT_WAIT.contains(&(operation & OPERATION_MASK))
    }

    /// Looks up the name of a futex, while the process exists.
    pub fn wait_began(&mut self, caller: Caller, address: u64) {
        let name = self.names.entry((caller.process, address));
        name.or_insert_with(|| name_of(&mut self.variables, caller, address));
    }

    /// Adds one wait.
    pub fn wait_ended(&mut self, process: u32, address: u64, ns: u64) {
        let waits = self.waits.entry((process, address)).or_default();
        waits.count += 1;
        waits.ns += ns;
    }

    /// Returns the waits of all processes by the name of the futex.
    pub fn by_name(&self) -> HashMap<String, Waits> {
        let mut sums: HashMap<String, Waits> = HashMap::new();
        for (key, waits) in &self.waits {
            let name = self.names.get(key).map_or("(unknown)", String::as_str);
            let sum = sums.entry(name.to_owned()).or_default();
            sum.count += waits.count;
            sum.ns += waits.ns;
        }
        sums
    }
}

/// Returns the name of the memory at an address: "VARIABLE in FILE", or the name of the mapping.
fn name_of(variables: &mut SymbolTables, caller: Caller, address: u64) -> String {
    let maps = caller.proc_folders().into_iter().find_map(|folder| {
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
            // Memory directly after the mappings of a file has no name, but belongs to the file.
            map.path.clone_into(&mut file);
        }
        if (map.start..map.end).contains(&address) {
            if map.path.starts_with('[') {
                return map.path.to_owned();
            }
            let first_map = Map::all(&maps).find(|map| map.path == file);
            let distance = first_map.map(|first| address.wrapping_sub(first.start));
            let name = distance.and_then(|distance| variables.find_from_base(&file, distance));
            return match (name, map.path) {
                (Some(name), _) => format!("{name} in {file}"),
                (None, "") => "anonymous memory".to_owned(),
                (None, path) => path.to_owned(),
            };
        }
    }
    "(no longer mapped)".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_operations_are_waits() {
        const PRIVATE: u64 = 128;
        assert!(Locks::is_wait(PRIVATE));
        assert!(Locks::is_wait(9 | PRIVATE | 256));
        assert!(!Locks::is_wait(1 | PRIVATE));
    }

    #[test]
    fn waits_of_several_processes_with_one_name_are_added_up() {
        let mut locks = Locks::default();
        locks.wait_ended(1, 16, 5);
        locks.wait_ended(2, 16, 7);
        let sum = locks.by_name()["(unknown)"];
        assert_eq!((sum.count, sum.ns), (2, 12));
    }
}
