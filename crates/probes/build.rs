//! Builds the small static program that the process probes start, and that the crate carries.
//!
//! It is static whatever the rest of the workspace is, and panics in no way, so cargo cannot build
//! it beside the others. It is linked as a small C program is, with the C library it forks by.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "small/main.rs";
const OPTIONS: [&str; 8] = [
    "--crate-name=small",
    "--crate-type=bin",
    "--edition=2024",
    "-Cpanic=abort",
    "-Copt-level=2",
    "-Cstrip=symbols",
    "-Ctarget-feature=+crt-static",
    "-Crelocation-model=static",
];
const LIBRARIES: &str =
    "-Clink-args=-Wl,-Bstatic -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group";

fn main() {
    println!("cargo::rerun-if-changed=small");
    let of_cargo = |name| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let program = PathBuf::from(of_cargo("OUT_DIR")).join("small");
    let mut compiler = Command::new(of_cargo("RUSTC"));
    compiler.args(OPTIONS).arg(LIBRARIES);
    compiler.arg("--target").arg(of_cargo("TARGET"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        compiler.arg(format!("-Clinker={}", linker.display()));
    }
    let status = compiler.arg("-o").arg(&program).arg(SOURCE).status();
    if !status.is_ok_and(|status| status.success()) {
        // The process probes say so; everything else works without.
        println!(
            "cargo::warning={SOURCE} could not be built, so there will be no figures for fork, exec \
             and sh: is there a static C library (Debian: libc6-dev, Fedora: glibc-static)?"
        );
        fs::write(&program, []).expect("OUT_DIR can be written");
    }
}
