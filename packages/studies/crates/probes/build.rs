//! Builds the fork server, the small static program that the process probes start and that
//! `equipoise-probe` includes.
//!
//! It is always static and has its own panic handler, so cargo cannot build it with the other
//! crates. The C compiler links it, so that it has the memory layout of a C program.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "fork_server/main.rs";
const COMPILING: [&str; 5] = [
    "--crate-name=fork_server",
    "--crate-type=staticlib",
    "--edition=2024",
    "-Cpanic=abort",
    "-Copt-level=2",
];
const LINKING: [&str; 3] = ["-static", "-s", "-Wl,--gc-sections"];

fn main() {
    println!("cargo::rerun-if-changed=fork_server");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let program = folder.join("fork_server");
    if !(compiled(&folder.join("libfork_server.a"))
        && linked(&folder.join("libfork_server.a"), &program))
    {
        // The process probes report it; the other probes do not need the program.
        println!(
            "cargo::warning={SOURCE} could not be built, so there will be no figures for fork, \
             exec and sh: is there a static C library (Debian: libc6-dev, Fedora: glibc-static)?"
        );
        fs::write(&program, []).expect("OUT_DIR can be written");
    }
}

fn compiled(library: &Path) -> bool {
    let of_cargo = |name| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let mut compiler = Command::new(of_cargo("RUSTC"));
    compiler
        .args(COMPILING)
        .arg("--target")
        .arg(of_cargo("TARGET"));
    succeeded(compiler.arg("-o").arg(library).arg(SOURCE))
}

/// The linker of cargo comes first. A linker for older systems (zig) has no static C library. Then
/// the library of this host is used, because a static program needs none of the system that it runs
/// on.
fn linked(library: &Path, program: &Path) -> bool {
    let linkers = [env::var_os("RUSTC_LINKER"), Some("cc".into())];
    linkers.into_iter().flatten().any(|compiler| {
        succeeded(
            Command::new(compiler)
                .args(LINKING)
                .arg("-o")
                .arg(program)
                .arg(library),
        )
    })
}

fn succeeded(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
