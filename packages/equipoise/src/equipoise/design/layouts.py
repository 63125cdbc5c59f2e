"""Memory layouts: a random level of a comparison, and programs that are linked in many of them.

A layout is an enlarged environment, a longer path by which the program is executed, addresses that
the kernel draws or keeps, and, where a command has ``{layout}`` in it, an executable of its own.
All conditions of a block have the same layout, so the ratio in a block belongs to that layout.

``equipoise layouts`` makes the executables. A program's layout in memory is chosen by nobody and
decides much (Mytkowicz et al. 2009; Curtsinger and Berger 2013). Every function gets a section of
its own, and each layout is a link with the sections in an order that its seed draws.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from equipoise.design.coin import Addresses, draw_layouts
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.shared.spelling import option

BLOCKS_IN_EACH = 2
"""Number of blocks that separates the variance between layouts from the variance within."""


def with_layouts(plan: Plan, count: int, addresses: Addresses = "drawn") -> Plan:
    """Return the plan over ``count`` layouts, which its coin draws.

    The default minimum of blocks rises so that each layout has two. Raise `UnusableInput` if a
    condition has a server, or there are too few blocks.
    """
    for condition in plan.conditions:
        if condition.server is not None:
            raise UnusableInput(
                f"{condition.name} is a server: layouts are for programs that run for one trial",
                hint="leave out the layouts; the size of the environment varies all the same",
            )
    min_blocks = BLOCKS_IN_EACH * count
    stopping = plan.stopping
    if stopping.blocks is not None and stopping.blocks < min_blocks:
        raise UnusableInput(
            f"{stopping.blocks} blocks are too few for {count} layouts",
            hint=f"allow {option('blocks', min_blocks)}: at least two for each layout",
        )
    if not stopping.min_blocks_explicit:
        stopping = replace(stopping, min_blocks=max(stopping.min_blocks, min_blocks))
    return replace(plan, stopping=stopping, layouts=draw_layouts(plan.seed, count, addresses))


def longer_path(path: str, more: int) -> str:
    """Return a path of the same file that is ``more`` bytes longer.

    Slashes in a row count as one (POSIX.1-2017, 4.13), so no folder and no link is needed. The
    kernel puts the path on the new stack, above the environment; the arguments stay what they are.
    """
    folder, name = os.path.split(os.path.abspath(path))
    return f"{folder.rstrip('/')}{'/' * (1 + more)}{name}"


Linker = Literal["lld", "mold", "objects"]
"""``objects`` is the usual linker, which gets the objects in another order."""

SOURCES = frozenset({".c", ".cc", ".cpp", ".cxx", ".m", ".s", ".S"})
_SECTIONS = ("-ffunction-sections", "-fdata-sections")
_TAKES_NEXT = frozenset({"-I", "-L", "-l", "-D", "-U", "-include", "-isystem", "-x", "-Xlinker"})


class Compilation(Struct, frozen=True):
    """A command line that compiles and links a program, in its parts."""

    compiler: str
    flags: tuple[str, ...]
    """All words but sources, objects, libraries and the output."""
    sources: tuple[str, ...]
    objects: tuple[str, ...]
    """Objects and archives that exist already."""
    libraries: tuple[str, ...]
    """Options ``-l`` and ``-L`` in their order; they come last in a link."""
    output: str

    def compile_lines(self, objects: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return the command that compiles each source into the object at the same position."""
        return tuple(
            (self.compiler, *_SECTIONS, *self.flags, "-c", source, "-o", target)
            for source, target in zip(self.sources, objects, strict=True)
        )

    def link_line(
        self, objects: Sequence[str], output: str, linker: Linker, seed: int
    ) -> tuple[str, ...]:
        """Return the command that links the objects into one layout."""
        inputs = [*objects, *self.objects]
        shuffle: tuple[str, ...] = ()
        if linker == "lld":
            shuffle = ("-fuse-ld=lld", f"-Wl,--shuffle-sections=.text*={seed}")
        elif linker == "mold":
            shuffle = ("-fuse-ld=mold", f"-Wl,--shuffle-sections={seed}")
        else:
            random.Random(seed).shuffle(inputs)
        return (self.compiler, *self.flags, *shuffle, *inputs, *self.libraries, "-o", output)


def parse_compilation(words: Sequence[str]) -> Compilation:
    """Return the parts of ``CC [FLAGS] SOURCES… [LIBRARIES] [-o PROGRAM]``.

    Raise `UnusableInput` if there is no source and no object, or the line makes no program (``-c``,
    ``-S``, ``-E``).
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
