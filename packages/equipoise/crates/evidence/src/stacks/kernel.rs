//! Finds the entry point of the kernel in a call chain: a system call, a page fault, an interrupt.

use std::fs;

use syscalls::Sysno;

/// The functions of the running kernel, by address.
#[derive(Debug, Default)]
pub struct KernelFunctions(Vec<(u64, String)>);

/// Smallest of the marker values that separate the parts of a call chain (`PERF_CONTEXT_*`).
const FIRST_MARKER: u64 = u64::MAX - 4095;

impl KernelFunctions {
    /// Reads `/proc/kallsyms`; the list is empty if `kernel.kptr_restrict` hides the addresses.
    pub fn read() -> Self {
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let mut fields = line.split_ascii_whitespace();
                let address = u64::from_str_radix(fields.next()?, 16).ok()?;
                let symbol_type = fields.next()?;
                let is_code = matches!(symbol_type, "t" | "T" | "w" | "W");
                (address != 0 && is_code).then_some((address, fields.next()?.to_owned()))
            })
            .collect();
        functions.sort();
        Self(functions)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn name(&self, address: u64) -> Option<&str> {
        let index = self.0.partition_point(|(start, _)| *start <= address);
        let (_, name) = self.0.get(index.checked_sub(1)?)?;
        Some(name)
    }

    /// Returns the entry point of a call chain, innermost address first; `None` outside the kernel.
    pub fn entry_point(&self, chain: &[u64]) -> Option<String> {
        let is_marker = |address: &&u64| **address >= FIRST_MARKER;
        if chain.iter().all(|address| is_marker(&address)) {
            return None;
        }
        let addresses = chain.iter().filter(|address| !is_marker(address));
        let names: Vec<&str> = addresses
            .filter_map(|address| self.name(*address))
            .collect();
        // The outermost entry point counts: a page fault inside a system call belongs to the call.
        let known_entry = names.iter().rev().find_map(|name| entry_point_at(name));
        let fallback = || {
            let is_entry_function =
                |name: &&&str| ENTRY_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            match names.iter().rev().find(|name| !is_entry_function(name)) {
                Some(name) => call_of_function(name).unwrap_or(name),
                None if names.is_empty() => "kernel",
                None => "system_call_entry",
            }
            .to_owned()
        };
        Some(known_entry.unwrap_or_else(fallback))
    }
}

/// Prefixes of the functions between the program and the function of a system call.
const ENTRY_PREFIXES: [&str; 4] = ["entry_SYSCALL", "do_syscall_64", "x64_sys_call", "el0_svc"];

/// Returns the system call to which a helper function such as `ksys_read` or `vm_mmap_pgoff`
/// belongs. A call's own function jumps to the helper, and is not in the call chain.
fn call_of_function(function: &str) -> Option<&'static str> {
    let rest = ["ksys_", "vfs_", "vm_", "do_sys_", "do_"]
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix))?;
    // The whole name is tried first, then ever shorter parts: `mmap_pgoff`, `mmap`.
    let ends = rest.match_indices('_').map(|(index, _)| index);
    [rest.len()]
        .into_iter()
        .chain(ends.rev())
        .find_map(|end| rest[..end].parse::<Sysno>().ok())
        .map(|call| call.name())
}

/// Returns the entry point that begins with a function; `None` for all other functions.
fn entry_point_at(function: &str) -> Option<String> {
    for prefix in ["x64", "ia32", "arm64", "se", "do"] {
        if let Some(call) = function.strip_prefix(&format!("__{prefix}_sys_")) {
            return Some(call.split('.').next().unwrap_or(call).to_owned());
        }
    }
    let known = [
        ("asm_exc_page_fault", "page_fault"),
        ("exc_page_fault", "page_fault"),
        ("do_translation_fault", "page_fault"),
        ("do_page_fault", "page_fault"),
        ("asm_sysvec_", "interrupt"),
        ("asm_common_interrupt", "interrupt"),
        ("el0_interrupt", "interrupt"),
        ("irqentry_exit_to_user_mode", "return_to_user"),
        ("syscall_exit_to_user_mode", "return_to_user"),
        ("ret_from_fork", "new_task"),
    ];
    known
        .iter()
        .find(|(prefix, _)| function.starts_with(prefix))
        .map(|(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000100 T zap_pte_range
ffffffff81000200 T __x64_sys_munmap
ffffffff81000300 T do_syscall_64
ffffffff81000400 T asm_exc_page_fault
ffffffff81000500 D some_data
ffffffff81000600 T vm_mmap_pgoff
ffffffff81000700 T ksys_read
0000000000000000 T hidden
";
    const KERNEL: u64 = u64::MAX - 127;

    #[test]
    fn a_function_called_by_a_system_call_has_that_entry_point() {
        let functions = KernelFunctions::parse(TEXT);
        let chain = [
            KERNEL,
            0xffff_ffff_8100_0110,
            0xffff_ffff_8100_0210,
            0xffff_ffff_8100_0310,
        ];
        assert_eq!(functions.entry_point(&chain).as_deref(), Some("munmap"));
    }

    #[test]
    fn a_system_call_is_recognised_by_the_function_to_which_it_jumped() {
        let functions = KernelFunctions::parse(TEXT);
        for (address, name) in [
            (0xffff_ffff_8100_0610, "mmap"),
            (0xffff_ffff_8100_0710, "read"),
        ] {
            let chain = [KERNEL, address, 0xffff_ffff_8100_0310];
            assert_eq!(functions.entry_point(&chain).as_deref(), Some(name));
        }
        let entry_chain = [KERNEL, 0xffff_ffff_8100_0310];
        let entry = functions.entry_point(&entry_chain);
        assert_eq!(entry.as_deref(), Some("system_call_entry"));
    }

    #[test]
    fn a_page_fault_of_the_program_is_an_entry_point() {
        let functions = KernelFunctions::parse(TEXT);
        let chain = [KERNEL, 0xffff_ffff_8100_0110, 0xffff_ffff_8100_0410];
        assert_eq!(functions.entry_point(&chain).as_deref(), Some("page_fault"));
    }

    #[test]
    fn there_is_no_entry_point_outside_the_kernel_and_no_name_without_symbols() {
        assert_eq!(KernelFunctions::default().entry_point(&[]), None);
        let chain = [KERNEL, 0xffff_ffff_8100_0110];
        let entry = KernelFunctions::default().entry_point(&chain);
        assert_eq!(entry.as_deref(), Some("kernel"));
    }
}
