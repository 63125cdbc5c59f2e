"""Finds the files and lines of a change that may decide how it is measured.

An objection does not prove a cheat, but a person has to look at it before a speed-up is believed.
There is no objection to things that the baseline does, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from equipoise.kinds.verify.terms import Objection
from equipoise.revisions.checkout import changes_between, patch_between
from equipoise.revisions.commits import is_documentation
from equipoise.revisions.pairs import PairRequest
from equipoise.shared.safe_text import short_line

MAX_OBJECTIONS = 8
"""Maximum number of objections of one kind in a plan."""
_MAX_LINE_LETTERS = 60
_WATCHED: dict[str, re.Pattern[str]] = {
    "a variable of Equipoise": re.compile(r"\bEQUIPOISE_"),
    "/proc": re.compile(r"/proc\b"),
    "a clock": re.compile(
        r"\b(?:clock_gettime|clock_getres|gettimeofday|timespec_get|ftime|_*rdtscp?|cntvct_el0"
        r"|CLOCK_[A-Z]+|omp_get_wtime|steady_clock|system_clock|high_resolution_clock"
        r"|perf_counter(?:_ns)?|process_time(?:_ns)?|monotonic(?:_ns)?|time_ns|time\.time"
        r"|Instant::now|SystemTime|time\.Now|nanoTime|currentTimeMillis|Date\.now"
        r"|performance\.now|hrtime|EPOCHREALTIME|EPOCHSECONDS)\b"
    ),
}
"""Names in code that measures itself, by a noun for them."""
_BENCHMARK_FOLDER = re.compile(r"(?:bench|test)", re.IGNORECASE)
"""Beginning of the name of a folder with benchmarks or tests."""
_BUILD_FILES = frozenset(
    "makefile gnumakefile cmakelists.txt cargo.toml cargo.lock build.rs meson.build "
    "meson_options.txt configure configure.ac build.ninja build.gradle pom.xml setup.py setup.cfg "
    "pyproject.toml package.json go.mod go.sum build.zig justfile rust-toolchain "
    "rust-toolchain.toml build.bazel workspace .bazelrc".split()
)
"""Lower-case names of files that say how a revision is built."""
_BUILD_SUFFIXES = frozenset({".mk", ".cmake", ".bzl"})
_BUILD_FOLDER = ".cargo"
_INTERPRETERS = re.compile(r"(?:python|pypy|perl|ruby|node|bash|dash|sh|php|lua|Rscript)[\d.]*")


class AddedLine(Struct, frozen=True):
    """A line that a change adds or removes."""

    path: str
    number: int
    """Number of the line in the candidate; 0 for a removed line."""
    text: str


def objections_to_change(request: PairRequest) -> tuple[Objection, ...]:
    """Return the objections to the files and the lines of a change.

    Raise `UnusableInput` if git fails.
    """
    repository, command = request.repository, request.benchmarks[0].command
    paths = changes_between(repository, request.baseline, request.candidate)
    patch = patch_between(repository, request.baseline, request.candidate)
    objections = [
        *changed_benchmarks(paths, command, repository.inside),
        *new_names(patch.decode("utf-8", "backslashreplace")),
    ]
    by_kind: dict[str, list[Objection]] = {}
    for objection in objections:
        by_kind.setdefault(objection.kind, []).append(objection)
    return tuple(objection for group in by_kind.values() for objection in group[:MAX_OBJECTIONS])


def changed_benchmarks(
    paths: Iterable[str], command: Sequence[str], folder: str
) -> Iterator[Objection]:
    """Yield the changed files that decide what is measured: benchmarks, inputs and build files.

    ``folder`` is the folder in the repository in which the command runs.
    """
    arguments = {os.path.normpath(os.path.join(folder, word)) for word in measured_inputs(command)}
    for path in paths:
        file = PurePosixPath(path)
        is_build_file = (
            file.name.lower() in _BUILD_FILES
            or file.suffix.lower() in _BUILD_SUFFIXES
            or _BUILD_FOLDER in file.parts
        )
        is_in_folder = any(map(_BENCHMARK_FOLDER.match, file.parts[:-1]))
        if path in arguments or is_build_file or is_in_folder:
            yield Objection("changed_benchmark", path)


def measured_inputs(command: Sequence[str]) -> Sequence[str]:
    """Return the arguments of a command; the script of an interpreter is a program."""
    program, *arguments = command
    if not _INTERPRETERS.fullmatch(os.path.basename(program)):
        return arguments
    script = next((index for index, word in enumerate(arguments) if not word.startswith("-")), -1)
    return arguments[script + 1 :]


def new_names(patch: str) -> Iterator[Objection]:
    """Yield the first added line with each kind of watched names, unless a line only moved."""
    lines = list(lines_of_patch(patch))
    for noun, pattern in _WATCHED.items():
        naming = [line for line in lines if pattern.search(line.text)]
        added = [line for line in naming if line.number]
        removed = [line.text.strip() for line in naming if not line.number]
        # A line that only moved names nothing new.
        for line in added:
            if line.text.strip() in removed:
                removed.remove(line.text.strip())
            else:
                text = short_line(line.text, _MAX_LINE_LETTERS)
                yield Objection(
                    "names_measurement", f"{line.path}:{line.number}", f"{noun}: {text}"
                )
                break


_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def lines_of_patch(patch: str) -> Iterator[AddedLine]:
    """Yield the added and removed lines of a patch without context, documentation left out."""
    path, number, in_hunk = "", 0, False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            path, in_hunk = "", False
        elif not in_hunk and line.startswith("+++ "):
            path = line.removeprefix("+++ ").strip('"').removeprefix("b/").rstrip("\t")
        elif (hunk := _HUNK.match(line)) is not None:
            number, in_hunk = int(hunk[1]), True
        elif not in_hunk or not path or is_documentation(path):
            continue
        elif line.startswith("+"):
            yield AddedLine(path, number, line[1:])
            number += 1
        elif line.startswith("-"):
            yield AddedLine(path, 0, line[1:])
