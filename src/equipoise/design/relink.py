"""A compiler's command line, taken apart: objects kept once, and a link for each layout.

A program's layout in memory is chosen by nobody and decides much (Mytkowicz et al. 2009; Curtsinger
and Berger 2013). Every function gets a section of its own, and each layout is a link with the
sections in an order that its seed draws.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from equipoise.model.errors import UnusableInput

Linker = Literal["lld", "mold", "objects"]
"""``objects``: the usual linker, which is given the objects in another order."""

SOURCES = frozenset({".c", ".cc", ".cpp", ".cxx", ".m", ".s", ".S"})
_SECTIONS = ("-ffunction-sections", "-fdata-sections")
_TAKES_NEXT = frozenset({"-I", "-L", "-l", "-D", "-U", "-include", "-isystem", "-x", "-Xlinker"})


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a command line compiles and links."""

    compiler: str
    flags: tuple[str, ...]
    """Everything but sources, objects, libraries and the output."""
    sources: tuple[str, ...]
    objects: tuple[str, ...]
    """Objects and archives that are there already."""
    libraries: tuple[str, ...]
    """``-l`` and ``-L``, in their order: they stand last in a link."""
    output: str

    def compile_lines(self, objects: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """How each source becomes the object of the same place."""
        return tuple(
            (self.compiler, *_SECTIONS, *self.flags, "-c", source, "-o", target)
            for source, target in zip(self.sources, objects, strict=True)
        )

    def link_line(
        self, objects: Sequence[str], output: str, linker: Linker, seed: int
    ) -> tuple[str, ...]:
        """How the objects become one layout."""
        every = [*objects, *self.objects]
        shuffle: tuple[str, ...] = ()
        if linker == "lld":
            shuffle = ("-fuse-ld=lld", f"-Wl,--shuffle-sections=.text*={seed}")
        elif linker == "mold":
            shuffle = ("-fuse-ld=mold", f"-Wl,--shuffle-sections={seed}")
        else:
            random.Random(seed).shuffle(every)
        return (self.compiler, *self.flags, *shuffle, *every, *self.libraries, "-o", output)


def taken_apart(words: Sequence[str]) -> Compilation:
    """Read ``CC [FLAGS] SOURCES… [LIBRARIES] [-o PROGRAM]``.

    Raises
    ------
    UnusableInput
        There is no source and no object, or the line does not link (``-c``, ``-S``, ``-E``).
    """
    if not words:
        raise _unusable("no compiler is named")
    compiler, *rest = words
    flags: list[str] = []
    sources: list[str] = []
    objects: list[str] = []
    libraries: list[str] = []
    output = "a.out"
    waiting = iter(rest)
    for word in waiting:
        if word in ("-c", "-S", "-E", "-shared"):
            raise _unusable(f"with {word} it makes no program")
        if word == "-o":
            output = next(waiting, "")
        elif word in _TAKES_NEXT:
            (libraries if word in ("-l", "-L") else flags).extend((word, next(waiting, "")))
        elif word.startswith(("-l", "-L")):
            libraries.append(word)
        elif word.startswith("-"):
            flags.append(word)
        elif PurePath(word).suffix in SOURCES:
            sources.append(word)
        elif PurePath(word).suffix in (".o", ".a", ".so"):
            objects.append(word)
        else:
            raise _unusable(f"{word!r} is neither an option nor a source nor an object")
    if not sources and not objects:
        raise _unusable("it names no source and no object")
    return Compilation(
        compiler, tuple(flags), tuple(sources), tuple(objects), tuple(libraries), output
    )


def _unusable(what: str) -> UnusableInput:
    return UnusableInput(
        f"the compiler's command line cannot be used: {what}",
        hint="as in equipoise layouts -- cc -O2 main.c list.c -lm -o program",
    )
