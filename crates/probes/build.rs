//! Builds the small static program that the process probes start, and that the crate carries.
//!
//! It is Rust without its library, so that it is a few kilobytes with one way in; cargo cannot
//! build such a program beside the others, as all of a workspace's programs panic in one way.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "small/main.rs";
const OPTIONS: &[&str] = &[
    "--crate-name=small",
    "--crate-type=bin",
    "--edition=2024",
    "-Cpanic=abort",
    "-Copt-level=2",
    "-Crelocation-model=static",
    "-Cstrip=symbols",
    "-Clink-arg=-nostdlib",
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-static",
    "-Clink-arg=-Wl,--build-id=none,-z,noseparate-code,-z,norelro",
];
/// Those whose system calls it knows.
const PROCESSORS: [&str; 2] = ["x86_64", "aarch64"];

fn main() {
    println!("cargo::rerun-if-changed=small");
    let of_cargo = |name| env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let program = PathBuf::from(of_cargo("OUT_DIR")).join("small");
    let processor = of_cargo("CARGO_CFG_TARGET_ARCH");
    if !PROCESSORS.iter().any(|known| processor == *known) {
        // An empty program: the probes say that it is not there.
        fs::write(&program, []).expect("OUT_DIR can be written");
        return;
    }
    let mut compiler = Command::new(of_cargo("RUSTC"));
    compiler
        .args(OPTIONS)
        .arg("--target")
        .arg(of_cargo("TARGET"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        compiler
            .arg("-C")
            .arg(format!("linker={}", linker.display()));
    }
    let status = compiler.arg("-o").arg(&program).arg(SOURCE).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{SOURCE} does not compile; the compiler's messages are above"
    );
}
