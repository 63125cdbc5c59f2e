"""How often a commit that changes nothing is red, with links of each block and with one link.

::

    python -m benchmarks.relink.live --results FILE                  # all projects and commits
    python -m benchmarks.relink.live --results FILE zlib --gates 2   # one project, two gates each

Five projects from their registries, unchanged, each with a small program that uses it. On top are
eight commits that change nothing, and one that does 5 % more work. Each is gated against the commit
before it, with ``--relink`` and without. Each gate is appended to the file at once, and gates that
the file has are not run again. Ends with 1 if more gates with ``--relink`` are red than alpha
allows beyond chance, or if fewer slowdowns are found than `MIN_FOUND`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.suites.others import GIT, fetch_crate, fetch_sdist

ALPHA, MIN_FOUND = 0.05, 0.95
PROGRAMS = Path(__file__).parent / "programs"
SLOWER = "5 % more work"


class Project(Struct, frozen=True):
    """A project of a registry, and how its program is built."""

    name: str
    fetch: Callable[[str, str, Path], None]
    package: str
    version: str
    sources: tuple[str, ...]
    """Files of the project that the program is built from; the first gets the changes."""
    flags: tuple[str, ...] = ()
    symbol: str = ""
    """A name inside of the first file that nothing else uses, for the commit that renames it."""

    @property
    def is_rust(self) -> bool:
        """Whether cargo builds the program."""
        return self.sources[0].endswith(".rs")

    @property
    def program(self) -> str:
        """Path of the built program."""
        return "./program/target/release/program" if self.is_rust else "./bench"

    @property
    def build(self) -> str:
        """Line that builds the program."""
        manifest = "program/Cargo.toml"
        return f"cargo build -q --release --manifest-path {manifest}" if self.is_rust else "make -s"


PROJECTS = (
    Project(
        "zlib",
        fetch_crate,
        "libz-sys",
        "1.1.22",
        tuple(
            f"src/zlib/{name}.c"
            for name in ("deflate", "adler32", "compress", "crc32", "inffast", "inflate")
            + ("inftrees", "trees", "uncompr", "zutil")
        ),
        ("-Isrc/zlib",),
        "deflate_stored",
    ),
    Project(
        "lz4",
        fetch_crate,
        "lz4-sys",
        "1.11.1+lz4-1.10.0",
        ("liblz4/lib/lz4.c", "liblz4/lib/lz4hc.c", "liblz4/lib/xxhash.c"),
        ("-Iliblz4/lib",),
        "LZ4_compress_generic_validated",
    ),
    Project(
        "rapidjson",
        fetch_sdist,
        "python-rapidjson",
        "1.20",
        ("program.cc",),
        ("-Irapidjson/include",),
        "walk",
    ),
    Project("itoa", fetch_crate, "itoa", "1.0.17", ("src/lib.rs",), symbol="slice_buffer_to_str"),
    Project("memchr", fetch_crate, "memchr", "2.7.4", ("src/memchr.rs",), symbol="sync_regression"),
)


class Gate(Struct, frozen=True):
    """One gate, as a line of the file of results."""

    project: str
    commit: str
    relinked: bool
    status: int
    ratio: float | None
    blocks: int
    seconds: float
    load: float
    error: str = ""


def changes_of(project: Project, folder: Path) -> list[tuple[str, Callable[[], None]]]:
    """Return the commits, each with the function that makes its change in the working tree."""
    source = folder / project.sources[0]

    def before(text: str) -> Callable[[], None]:
        if not project.is_rust:
            return lambda: _write(source, text + source.read_text())
        # Attributes of a crate come first.
        return lambda: _write(source, source.read_text() + text)

    def unused(name: str, lines: int) -> str:
        body = "".join(f"    x = x * {3 + 2 * line} + {line};\n" for line in range(lines))
        if project.is_rust:
            body = body.replace("x * ", "x.wrapping_mul(").replace(" + ", ").wrapping_add(")
            body = body.replace(";\n", ");\n")
            return (
                "\n/// Nothing.\n#[no_mangle]\n"
                f'pub extern "C" fn {name}(mut x: u32) -> u32 {{\n{body}    x\n}}\n'
            )
        kept = "__attribute__((used)) "
        return f"{kept}static unsigned {name}(unsigned x) {{\n{body}    return x;\n}}\n"

    data = (
        "\n/// Nothing.\n#[used]\npub static EQUIPOISE_PADDING: [u8; 4000] = [7; 4000];\n"
        if project.is_rust
        else "__attribute__((used)) static const char equipoise_padding[4000] = {7};\n"
    )

    def reorder() -> None:
        if project.is_rust:
            _write(source, "// Nothing.\n\n" + source.read_text())
        else:
            makefile = folder / "Makefile"
            _write(makefile, makefile.read_text().replace("$(OBJECTS)", "$(REVERSED)"))

    def rename() -> None:
        text = source.read_text()
        _write(source, text.replace(project.symbol, f"{project.symbol}_renamed"))

    def slow_down() -> None:
        (main,) = folder.glob("program/src/main.rs" if project.is_rust else "program.c*")
        _write(main, re.sub(r"(ROUNDS(: usize)? = 10)0", r"\g<1>5", main.read_text()))

    return [
        ("docs", lambda: _write(folder / "NOTES.md", "Nothing that is built.\n")),
        ("comment", before("// Nothing.\n")),
        ("unused function", before(unused("equipoise_unused", 3))),
        ("long unused function", before(unused("equipoise_long", 60))),
        ("unused data", before(data)),
        ("objects in another order", reorder),
        ("renamed symbol", rename),
        ("three empty lines", before("\n\n\n")),
        (SLOWER, slow_down),
    ]


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def repository_of(project: Project, folder: Path) -> list[str]:
    """Make the repository with a tag for each commit; return the names of the commits."""
    project.fetch(project.package, project.version, folder)
    if project.is_rust:
        shutil.copytree(PROGRAMS / project.name, folder / "program")
        (folder / ".gitignore").write_text("target\n")
    else:
        (program,) = PROGRAMS.glob(f"{project.name}.c*")
        main = f"program{program.suffix}"
        shutil.copy(program, folder / main)
        _write(folder / "Makefile", makefile_of(project, main))
        (folder / ".gitignore").write_text("*.o\nbench\n")
    subprocess.run([*GIT, "init", "--quiet"], cwd=folder, check=True)

    def commit(number: int) -> None:
        subprocess.run([*GIT, "add", "--all", "--force", "."], cwd=folder, check=True)
        words = ("commit", "--quiet", "--allow-empty", "-m", f"commit {number}")
        subprocess.run([*GIT, *words], cwd=folder, check=True)
        subprocess.run([*GIT, "tag", f"c{number}"], cwd=folder, check=True)

    commit(0)
    changes = changes_of(project, folder)
    for number, (_, change) in enumerate(changes, start=1):
        change()
        commit(number)
    return [name for name, _ in changes]


def makefile_of(project: Project, main: str) -> str:
    """Return a Makefile that compiles each source into an object, and links them in order."""
    sources = list(dict.fromkeys([main, *project.sources]))
    objects = [f"{Path(source).stem}.o" for source in sources]
    compiler = "$(CXX)" if main.endswith(".cc") else "$(CC)"
    flags = " ".join(("-O2", "-w", *project.flags))
    rules = "".join(
        f"{target}: {source}\n\t{compiler} {flags} -c -o {target} {source}\n"
        for source, target in zip(sources, objects, strict=True)
    )
    return (
        f"OBJECTS = {' '.join(objects)}\nREVERSED = {' '.join(reversed(objects))}\n"
        f"bench: $(OBJECTS)\n\t{compiler} -o bench $(OBJECTS)\n{rules}"
    )


def gate(
    project: Project, folder: Path, number: int, name: str, budget: float, *, relinked: bool
) -> Gate:
    """Gate a commit against the commit before it."""
    result = folder / ".git/gate.json"
    result.unlink(missing_ok=True)
    load, _, _ = os.getloadavg()
    began = time.perf_counter()
    done = subprocess.run(
        [
            *("equipoise", "gate", "--baseline", f"c{number - 1}", "--candidate", f"c{number}"),
            *("--budget", f"{budget:g}", "--json", result, "--build", project.build),
            *(("--relink", "6") if relinked else ()),
            *("--", project.program),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - began
    document = json.loads(result.read_text()) if result.exists() else {}
    rows = (document.get("gate") or {}).get("rows", [])
    return Gate(
        project=project.name,
        commit=name,
        relinked=relinked,
        status=done.returncode,
        ratio=rows[0]["ratio"] if rows else None,
        blocks=(document.get("run") or {}).get("blocks") or 0,
        seconds=seconds,
        load=load,
        error="" if done.returncode in (0, 1) else done.stderr.strip()[-300:],
    )


def gates_of(path: Path) -> list[Gate]:
    """Return the gates in a file of results."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Gate) for line in lines]


def measure(project: Project, path: Path, gates: int, budget: float) -> None:
    """Run the gates of a project that the file lacks."""
    with tempfile.TemporaryDirectory(prefix="relink-") as parent:
        folder = Path(parent, "project")
        folder.mkdir()
        names = repository_of(project, folder)
        rounds = itertools.product(range(gates), enumerate(names, start=1), (True, False))
        for round_number, (number, name), relinked in rounds:
            done = sum(
                (one.project, one.commit, one.relinked) == (project.name, name, relinked)
                for one in gates_of(path)
            )
            if done > round_number:
                continue
            answer = gate(project, folder, number, name, budget, relinked=relinked)
            print(answer, file=sys.stderr, flush=True)
            if answer.error:
                continue
            with path.open("ab") as stream:
                stream.write(msgspec.json.encode(answer) + b"\n")


def row_of(gates: Sequence[Gate]) -> str:
    """Return the columns of some gates: how many, the red ones, the largest ratio, the seconds."""
    if not gates:
        return f"{'-':>10}{'-':>12}{'-':>8}"
    red = sum(one.status == 1 for one in gates)
    largest = max(gates, key=lambda one: abs(math.log(one.ratio or 1.0))).ratio or 1.0
    seconds = statistics.median(one.seconds for one in gates)
    return f"{f'{red}/{len(gates)}':>10}{f'{100 * (largest - 1):+.1f} %':>12}{seconds:>8.0f}"


def main() -> int:
    """Run the gates that were asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="*", help="names; all by default")
    parser.add_argument("--results", type=Path, required=True, help="file of gates, appended to")
    parser.add_argument("--gates", type=int, default=10, help="of each commit, of each kind")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of a gate")
    asked = parser.parse_args()
    for project in PROJECTS:
        if not asked.projects or project.name in asked.projects:
            measure(project, asked.results, asked.gates, asked.budget)
    gates = gates_of(asked.results)
    columns = f"{'red':>10}{'largest':>12}{'s':>8}"
    print(f"{'':<36}{'--relink':^30}{'one link':^30}\n{'':<36}{columns}{columns}")
    shares: dict[tuple[bool, bool], list[Gate]] = {}
    for one in gates:
        shares.setdefault((one.commit == SLOWER, one.relinked), []).append(one)
    for project in PROJECTS:
        of_project = [one for one in gates if one.project == project.name]
        for commit in dict.fromkeys(one.commit for one in of_project):
            of_commit = [one for one in of_project if one.commit == commit]
            cells = (
                row_of([one for one in of_commit if one.relinked == kind]) for kind in (True, False)
            )
            print(f"{project.name + ': ' + commit:<36}" + "".join(cells))
    for is_slower, title in ((False, "all that change nothing"), (True, f"all with {SLOWER}")):
        cells = (row_of(shares.get((is_slower, kind), [])) for kind in (True, False))
        print(f"{title:<36}" + "".join(cells))
    unchanged, slower = shares.get((False, True), []), shares.get((True, True), [])
    red = sum(one.status == 1 for one in unchanged)
    found = sum(one.status == 1 for one in slower)
    limit = ALPHA * len(unchanged) + 3.0 * math.sqrt(ALPHA * (1 - ALPHA) * len(unchanged))
    return 1 if red > limit or found < MIN_FOUND * len(slower) else 0


if __name__ == "__main__":
    sys.exit(main())
