"""Build hook: puts what cargo builds into the wheel, or beside the sources if editable."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OPTIONS = "--locked --release --message-format=json-render-diagnostics"
MANYLINUX = "EQUIPOISE_MANYLINUX"
"""Version of the C library, such as ``2.28``, from which on the wheel is to run; without it, the
wheel is for this host alone, and says so. cargo-zigbuild links against that version."""
EXTENSION = "_native"  # the module; the library of its crate may have another name
NOTICES = "THIRD-PARTY-NOTICES.txt"
"""File of a wheel with the licences of the crates of others that are in its programs."""
_LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
_RUST = "Rust's standard library  MIT OR Apache-2.0  https://github.com/rust-lang/rust"


def third_party_notices(manifests: Iterable[Path]) -> str:
    """Return the licence and the source of each crate, and the text of each licence once."""
    crates: dict[str, str] = {}
    texts: dict[str, list[str]] = {}
    for manifest in sorted(set(manifests)):
        package = tomllib.loads(manifest.read_text())["package"]
        name = f"{package['name']} {package['version']}"
        licence = package.get("license") or f"see {package.get('license-file')}"
        address = f"https://crates.io/crates/{package['name']}/{package['version']}"
        crates[name] = f"{name}  {licence}  {address}"
        for file in sorted(manifest.parent.iterdir()):
            if file.is_file() and _LICENCE_FILE.match(file.name):
                text = file.read_text(errors="replace").strip()
                texts.setdefault(text, []).append(f"{name}, {file.name}")
    parts = [
        "The programs of this wheel contain, or were built with, code of others. Each line has a\n"
        "crate, its licence, and where its source is:",
        "\n".join([_RUST, *crates.values()]),
        *(f"{'=' * 80}\n{'; '.join(named)}\n\n{text}" for text, named in texts.items()),
    ]
    return "\n\n".join(parts) + "\n"


class CargoBuildHook(BuildHookInterface[BuilderConfig]):
    """Programs and preloadable libraries go to ``_bin/``, the extension beside the modules.

    Each package says in its pyproject.toml what its own are: ``package``, the folder of its
    modules; ``crates``, the options of cargo that select its crates; ``extension``, the library
    that becomes the module ``_native``, if there is one.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the crates; ``version`` is ``standard`` or ``editable``."""
        if self.target_name == "sdist":
            # Of a link, an sdist would keep the link, which leads nowhere once it is unpacked.
            included = build_data["force_include"]
            build_data["force_include"] = {
                os.path.realpath(file): inside for file, inside in included.items()
            }
            return
        built, others = self.build()
        package = self.config["package"]
        artefacts = {f"{package}/{inside}": file for file, inside in built}
        system = sysconfig.get_platform()
        if oldest := os.environ.get(MANYLINUX):
            system = system.replace("linux", f"manylinux_{oldest}")
        build_data["pure_python"] = False
        # Programs alone run beside any Python.
        python = "cp311-abi3" if "extension" in self.config else "py3-none"
        build_data["tag"] = f"{python}-{system.replace('-', '_').replace('.', '_')}"
        if version != "editable":
            # Beside what cargo built: a folder that is there, and that nobody commits.
            notices = built[0][0].with_name(NOTICES)
            notices.write_text(third_party_notices(others))
            artefacts[f"{package}/{NOTICES}"] = notices
            build_data["force_include"].update({str(f): to for to, f in artefacts.items()})
            return
        for left in Path(self.root, "src", package, "_bin").glob("*"):
            # What was built into it once and belongs to another package now.
            if f"{package}/_bin/{left.name}" not in artefacts:
                left.unlink()
        for inside, file in artefacts.items():
            place = Path(self.root, "src", inside)
            place.parent.mkdir(exist_ok=True)
            # Renamed into place: a running program cannot be overwritten.
            shutil.copy2(file, fresh := place.with_name(place.name + ".new"))
            fresh.replace(place)

    def build(self) -> tuple[list[tuple[Path, str]], list[Path]]:
        """Each file that cargo built with its place in the package, and manifests of others."""
        if shutil.which("cargo") is None:
            raise SystemExit("no cargo on the path: install Rust 1.89 or later, https://rustup.rs")
        # The stable ABI needs no interpreter to build against, and so depends on none.
        environment = os.environ | {"PYO3_NO_PYTHON": "1", "PYO3_BUILD_EXTENSION_MODULE": "1"}
        options = " ".join((*self.config["crates"], OPTIONS))
        command = f"cargo build {options}"
        if oldest := os.environ.get(MANYLINUX):
            target = f"{platform.machine()}-unknown-linux-gnu.{oldest}"
            command = f"cargo zigbuild {options} --target {target}"
        done = subprocess.run(
            command.split(), cwd=self.root, env=environment, stdout=subprocess.PIPE, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"`{command}` failed in {self.root}; its messages are above")
        found: list[tuple[Path, str]] = []
        others: list[Path] = []
        for message in map(json.loads, done.stdout.splitlines()):
            if message["reason"] != "compiler-artifact":
                continue
            if not message["package_id"].startswith("path+file:"):
                others.append(Path(message["manifest_path"]).resolve())
                continue  # a dependency; some build shared libraries of their own
            target = message["target"]
            if message["executable"] is not None:
                found.append((Path(message["executable"]), f"_bin/{target['name']}"))
            elif "cdylib" in target["kind"]:
                library = next(Path(f) for f in message["filenames"] if f.endswith(".so"))
                extension = target["name"] == self.config.get("extension")
                inside = f"{EXTENSION}.abi3.so" if extension else f"_bin/{library.name}"
                found.append((library, inside))
        return found, others
