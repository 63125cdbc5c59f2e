"""The same kernels with tango-bench 0.7.2: how often it stars 1 % more work, and equal kernels.

    python -m benchmarks.functions_of_revisions.tango             # what the file lacks, 3 minutes
    python -m benchmarks.functions_of_revisions.tango --summary   # only count

tango loads the executable of the other revision into its process, and measures for a second. A star
marks a difference that it calls significant. cargo fetches tango from crates.io. Results are
appended to a file, and a call goes on where the last one stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.functions.run import bound
from benchmarks.functions_of_revisions.kernels import BODIES, source_of
from benchmarks.functions_of_revisions.run import HEADER, REVISIONS, ROOT, read

TANGO = "=0.7.2"
SECONDS = 1
_ROW = re.compile(r"(?P<name>\w+) +\[.*\] +(?P<change>[+-][\d.]+)%(?P<star>\*?)")
_MANIFEST = f"""\
[package]
name = "kernels"
version = "0.1.0"
edition = "2021"
[workspace]
[lib]
path = "lib.rs"
[dev-dependencies]
tango-bench = "{TANGO}"
[[bench]]
name = "kernels"
path = "kernels.rs"
harness = false
"""
_BUILD = """\
use std::{env, process::Command};
fn main() {
    println!("cargo:rerun-if-env-changed=KERNEL_FLAGS");
    println!("cargo:rustc-link-arg-benches=-rdynamic");
    let out = env::var("OUT_DIR").unwrap();
    let flags = env::var("KERNEL_FLAGS").unwrap();
    let mut objects = vec![];
    for name in [NAMES] {
        let object = format!("{out}/{name}.o");
        let done = Command::new("cc")
            .args(["-O2", "-fPIC", "-c", &format!("{name}.c"), "-o", &object])
            .arg(format!("-Dequipoise_setup=setup_{name}"))
            .arg(format!("-Dunused_one=unused_one_{name}"))
            .arg(format!("-Dunused_other=unused_other_{name}"))
            .arg(format!("-Dunused_table=unused_table_{name}"))
            .args(flags.split_whitespace())
            .status();
        assert!(done.unwrap().success());
        println!("cargo:rustc-link-arg-benches={object}");
        objects.push(object);
    }
}
"""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--summary", action="store_true")
    folder = ROOT / "target/functions-of-revisions"
    parser.add_argument("--results", type=Path, default=folder / "tango.jsonl")
    options = parser.parse_args()
    if not options.summary:
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder / "tango", options.results, options.seconds)
    summarise(read(options.results))


def measure(folder: Path, results: Path, seconds: float) -> None:
    """Compare each kernel of two revisions, until the time is over."""
    programs = {revision: built(folder, revision) for revision in REVISIONS}
    done = {(row["kernel"], row["variant"]) for row in read(results)}
    end = time.monotonic() + seconds
    with results.open("a") as stream:
        for kernel in BODIES:
            for variant in ("slower", "equal"):
                if time.monotonic() > end:
                    return
                if (kernel, variant) not in done:
                    row = compared(programs, kernel, variant)
                    stream.write(json.dumps(row) + "\n")
                    stream.flush()


def built(folder: Path, revision: str) -> Path:
    """Return the executable of a revision; build it unless it exists."""
    program = folder / f"kernels-{revision}"
    if program.exists():
        return program
    folder.mkdir(exist_ok=True)
    (folder / "Cargo.toml").write_text(_MANIFEST)
    (folder / "lib.rs").touch()
    (folder / HEADER.name).write_text(HEADER.read_text())
    for name in BODIES:
        (folder / f"{name}.c").write_text(source_of(name))
    names = ", ".join(f'"{name}"' for name in BODIES)
    (folder / "build.rs").write_text(_BUILD.replace("NAMES", names))
    declared = "".join(
        f"    fn setup_{name}();\n    fn equipoise_bench_{name}(n: u64) -> u64;\n"
        for name in BODIES
    )
    listed = "".join(
        f'    benchmark_fn("{name}", |b| {{ unsafe {{ setup_{name}() }};'
        f" b.iter(|| unsafe {{ equipoise_bench_{name}(1) }}) }}),\n"
        for name in BODIES
    )
    (folder / "kernels.rs").write_text(
        "use tango_bench::{benchmark_fn, tango_benchmarks, tango_main, IntoBenchmarks};\n"
        f'extern "C" {{\n{declared}}}\n'
        f"fn benches() -> impl IntoBenchmarks {{ [\n{listed}] }}\n"
        "tango_benchmarks!(benches());\ntango_main!();\n"
    )
    environment = {**os.environ, "KERNEL_FLAGS": REVISIONS[revision]}
    command = ["cargo", "build", "--release", "--benches", "--message-format=json"]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    messages = map(json.loads, done.stdout.splitlines())
    files = [each["executable"] for each in messages if each.get("executable")]
    shutil.copy2(files[-1], program)
    return program


def compared(programs: dict[str, Path], kernel: str, variant: str) -> dict[str, Any]:
    """Run tango on one kernel of two revisions."""
    command = [programs[variant], "compare", programs["base"], "-t", str(SECONDS), "-f", kernel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    match = next((_ROW.match(line) for line in done.stdout.splitlines() if _ROW.match(line)), None)
    if match is None or done.returncode != 0:
        return {
            "kernel": kernel,
            "variant": variant,
            "failure": (done.stderr or done.stdout)[-200:],
        }
    change = float(match["change"])
    return {"kernel": kernel, "variant": variant, "change": change, "star": bool(match["star"])}


def summarise(rows: Sequence[dict[str, Any]]) -> None:
    """Print how many differences tango calls significant."""
    for variant in ("slower", "equal"):
        some = [row for row in rows if row["variant"] == variant]
        good = [row for row in some if "failure" not in row]
        slower = [row for row in good if row["star"] and row["change"] > 0]
        faster = [row for row in good if row["star"] and row["change"] < 0]
        if good:
            sizes = sorted(abs(row["change"]) for row in good)
            print(
                f"tango {TANGO[1:]}, {variant}: {len(slower)} of {len(good)} kernels slower, "
                f"{len(faster)} faster; {len(some) - len(good)} failed; median change "
                f"{sizes[len(sizes) // 2]:g} %, at most {sizes[-1]:g} %"
            )
    print(f"of 30 equal kernels, at most {bound(30)} are in line with 5 %")


if __name__ == "__main__":
    main()
