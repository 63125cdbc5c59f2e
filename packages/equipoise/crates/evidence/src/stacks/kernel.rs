//! Entry points of the kernel: a system call, a page fault, an interrupt.

use std::fs;

use syscalls::Sysno;

/// The functions of the running kernel, by address.
#[derive(Debug, Default)]
pub struct KernelFunctions(Vec<(u64, String)>);

/// First of the markers around the kernel's part of a call chain (`PERF_CONTEXT_*`).
const MARKERS_FROM: u64 = u64::MAX - 4095;

impl KernelFunctions {
    /// Reads `/proc/kallsyms`; empty where `kernel.kptr_restrict` hides the addresses.
    pub fn read() -> Self {
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let mut functions: Vec<_> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let kind = words.next()?;
                let is_code = matches!(kind, "t" | "T" | "w" | "W");
                (address != 0 && is_code).then_some((address, words.next()?.to_owned()))
            })
            .collect();
        functions.sort();
        Self(functions)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn name(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        let (_, name) = self.0.get(after.checked_sub(1)?)?;
        Some(name)
    }

    /// Returns the entry point of a chain that begins innermost; `None` outside the kernel.
    pub fn entry(&self, chain: &[u64]) -> Option<String> {
        let is_marker = |address: &&u64| **address >= MARKERS_FROM;
        if chain.iter().all(|address| is_marker(&address)) {
            return None;
        }
        let addresses = chain.iter().filter(|address| !is_marker(address));
        let names: Vec<&str> = addresses
            .filter_map(|address| self.name(*address))
            .collect();
        // The outermost known entry point: a fault inside a call belongs to the call.
        let entry_point = names.iter().rev().find_map(|name| entry_point(name));
        let other = || {
            let at_entry = |name: &&&str| AT_ENTRY.iter().any(|start| name.starts_with(start));
            match names.iter().rev().find(|name| !at_entry(name)) {
                Some(name) => call_of(name).unwrap_or(name),
                None if names.is_empty() => "kernel",
                None => "system_call_entry",
            }
            .to_owned()
        };
        Some(entry_point.unwrap_or_else(other))
    }
}

/// Between the program and the function of the call.
const AT_ENTRY: [&str; 4] = ["entry_SYSCALL", "do_syscall_64", "x64_sys_call", "el0_svc"];

/// The system call that a function does the work of, and that has jumped there:
/// `ksys_read`, `vm_mmap_pgoff`.
fn call_of(function: &str) -> Option<&'static str> {
    let rest = ["ksys_", "vfs_", "vm_", "do_sys_", "do_"]
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix))?;
    let ends = rest.match_indices('_').map(|(at, _)| at);
    [rest.len()]
        .into_iter()
        .chain(ends.rev())
        .find_map(|end| rest[..end].parse::<Sysno>().ok())
        .map(|call| call.name())
}

fn entry_point(function: &str) -> Option<String> {
    for kind in ["x64", "ia32", "arm64", "se", "do"] {
        if let Some(call) = function.strip_prefix(&format!("__{kind}_sys_")) {
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
    fn a_leaf_is_charged_to_its_system_call() {
        let functions = KernelFunctions::parse(TEXT);
        let chain = [
            KERNEL,
            0xffff_ffff_8100_0110,
            0xffff_ffff_8100_0210,
            0xffff_ffff_8100_0310,
        ];
        assert_eq!(functions.entry(&chain).as_deref(), Some("munmap"));
    }

    #[test]
    fn a_call_that_has_jumped_to_its_work_is_named_by_it() {
        let functions = KernelFunctions::parse(TEXT);
        for (address, name) in [
            (0xffff_ffff_8100_0610, "mmap"),
            (0xffff_ffff_8100_0710, "read"),
        ] {
            let chain = [KERNEL, address, 0xffff_ffff_8100_0310];
            assert_eq!(functions.entry(&chain).as_deref(), Some(name));
        }
        let at_entry = [KERNEL, 0xffff_ffff_8100_0310];
        let entry = functions.entry(&at_entry);
        assert_eq!(entry.as_deref(), Some("system_call_entry"));
    }

    #[test]
    fn a_fault_of_the_program_is_a_fault() {
        let functions = KernelFunctions::parse(TEXT);
        let chain = [KERNEL, 0xffff_ffff_8100_0110, 0xffff_ffff_8100_0410];
        assert_eq!(functions.entry(&chain).as_deref(), Some("page_fault"));
    }

    #[test]
    fn outside_the_kernel_there_is_no_entry_point_and_without_names_an_unnamed_one() {
        assert_eq!(KernelFunctions::default().entry(&[]), None);
        let chain = [KERNEL, 0xffff_ffff_8100_0110];
        let entry = KernelFunctions::default().entry(&chain);
        assert_eq!(entry.as_deref(), Some("kernel"));
    }
}
