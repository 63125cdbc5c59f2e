//! Builds the fork server, a small static program that `equipoise-probe` contains and starts.
//!
//! Cargo cannot build the fork server as a crate, because it has its own panic handler. The C
//! compiler links it, so it has the memory layout of a C program.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Source of the fork server.
const SOURCE: &str = "fork_server/main.rs";
const COMPILER_OPTIONS: [&str; 5] = [
    "--crate-name=fork_server",
    "--crate-type=staticlib",
    "--edition=2024",
    "-Cpanic=abort",
    "-Copt-level=2",
];
const LINKER_OPTIONS: [&str; 3] = ["-static", "-s", "-Wl,--gc-sections"];

fn main() {
    println!("cargo::rerun-if-changed=fork_server");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let program = folder.join("fork_server");
    if !(compile(&folder.join("libfork_server.a"))
        && link(&folder.join("libfork_server.a"), &program))
    {
        // Only the probes of processes need the program, and report that it is missing.
        println!(
            "cargo::warning={SOURCE} could not be built, so there will be no figures for fork, \
             exec and sh: is there a static C library (Debian: libc6-dev, Fedora: glibc-static)?"
        );
        fs::write(&program, []).expect("OUT_DIR can be written");
    }
}

fn compile(library: &Path) -> bool {
    let cargo_variable = |name| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let mut compiler = Command::new(cargo_variable("RUSTC"));
    compiler
        .args(COMPILER_OPTIONS)
        .arg("--target")
        .arg(cargo_variable("TARGET"));
    run(compiler.arg("-o").arg(library).arg(SOURCE))
}

/// Links the program by cargo's linker. If this fails, `cc` links it: cargo's linker may be zig,
/// for older systems, without a static C library.
fn link(library: &Path, program: &Path) -> bool {
    let linkers = [env::var_os("RUSTC_LINKER"), Some("cc".into())];
    linkers.into_iter().flatten().any(|compiler| {
        run(Command::new(compiler)
            .args(LINKER_OPTIONS)
            .arg("-o")
            .arg(program)
            .arg(library))
    })
}

fn run(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
