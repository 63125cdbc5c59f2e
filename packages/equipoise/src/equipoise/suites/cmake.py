"""Finds the programs that CMake builds from a benchmark library of C++."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from equipoise.suites.searching import files_named, text_in

_PROGRAM = re.compile(r"^[ \t]*add_executable\s*\(\s*([\w.+-]+)\s*([^)]*)\)", re.MULTILINE)
_LINKED = r"^[ \t]*target_link_libraries\s*\(\s*{}\s([^)]*)\)"
_COMMENT = re.compile(r"#.*")
_SOURCE_NAMES = r".*\.(?:cc|cpp|cxx|c\+\+|C|hpp|hh|h|ipp)"


class CMakeProgram(Struct, frozen=True):
    """A program that a ``CMakeLists.txt`` declares."""

    name: str
    file: Path
    """The ``CMakeLists.txt``, relative to the folder of the project."""
    libraries: tuple[str, ...]
    """Names of libraries with which the program is linked."""
    sources: tuple[Path, ...]
    """Source files; all files of the folder if the program names its files by a variable."""

    @property
    def command(self) -> tuple[str, ...]:
        """The program in the folder ``build``."""
        return (f"./build/{self.file.parent / self.name}",)

    @property
    def build(self) -> str:
        """Shell line that builds the program with optimisations."""
        return (
            f"cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target {self.name}"
        )

    def source_with(self, pattern: str) -> Path | None:
        """Return the first source file whose text matches a regular expression."""
        matches = re.compile(pattern, re.MULTILINE)
        return next((path for path in self.sources if matches.search(text_in(path))), None)


def cmake_programs(folder: Path) -> Iterator[CMakeProgram]:
    """Yield the programs of a folder that has a ``CMakeLists.txt``."""
    if not (folder / "CMakeLists.txt").is_file():
        return
    for path in files_named(folder, r"CMakeLists\.txt"):
        text = _COMMENT.sub("", text_in(path))
        for program in _PROGRAM.finditer(text):
            name = program[1]
            linked = re.findall(_LINKED.format(re.escape(name)), text, re.MULTILINE)
            libraries = tuple(word for words in linked for word in words.split())
            sources = tuple(_sources(path.parent, program[2].split()))
            yield CMakeProgram(name, path.relative_to(folder), libraries, sources)


def _sources(folder: Path, words: list[str]) -> Iterator[Path]:
    files = [folder / word.strip('"') for word in words if re.fullmatch(_SOURCE_NAMES, word)]
    if files and not any("$" in word for word in words):
        yield from files
    else:
        yield from files_named(folder, _SOURCE_NAMES)
