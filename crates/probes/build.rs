//! Builds the small static program that the process probes start, and that the crate carries.
//!
//! It is static whatever the rest of the workspace is, and panics in no way, so cargo cannot build
//! it beside the others. The C compiler links it, so that it lies in memory as a C program does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "small/main.rs";
const COMPILING: [&str; 5] = [
    "--crate-name=small",
    "--crate-type=staticlib",
    "--edition=2024",
    "-Cpanic=abort",
    "-Copt-level=2",
];
const LINKING: [&str; 3] = ["-static", "-s", "-Wl,--gc-sections"];

fn main() {
    println!("cargo::rerun-if-changed=small");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let program = folder.join("small");
    if !(compiled(&folder.join("libsmall.a")) && linked(&folder.join("libsmall.a"), &program)) {
        // The process probes say so; everything else works without.
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

fn linked(library: &Path, program: &Path) -> bool {
    let compiler = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    succeeded(
        Command::new(compiler)
            .args(LINKING)
            .arg("-o")
            .arg(program)
            .arg(library),
    )
}

fn succeeded(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}
