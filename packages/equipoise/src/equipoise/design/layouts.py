"""Memory layouts: where code and data lie in memory; and programs linked in many layouts.

The memory layout has a large effect on the speed of a program (Mytkowicz et al. 2009; Curtsinger
and Berger 2013). A layout sets the size of the environment, the length of the program's path, and
whether addresses are random. If a command contains ``{layout}``, each layout also has its own
executable. All conditions of a block have the same layout.

``equipoise layouts`` links these executables. Every function is a section of an object file, and
the seed of a layout sets the order of the sections.
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

MIN_BLOCKS_IN_EACH = 2
"""Minimum number of blocks in each layout, to know the variance within layouts."""


def with_layouts(plan: Plan, count: int, addresses: Addresses = "drawn") -> Plan:
    """Return the plan with ``count`` layouts, which the coin draws.

    By default, the plan then needs at least `MIN_BLOCKS_IN_EACH` blocks for each layout.

    Raise `UnusableInput` if a condition has a server, or if the plan allows too few blocks.
    """
    for condition in plan.conditions:
        if condition.server is not None:
            raise UnusableInput(
                f"{condition.name} is a server: layouts are for programs that run for one trial",
                hint=f"leave out {option('layouts')}",
            )
    min_blocks = MIN_BLOCKS_IN_EACH * count
    stopping = plan.stopping
    if stopping.blocks is not None and stopping.blocks < min_blocks:
        raise UnusableInput(
            f"{stopping.blocks} blocks are too few for {count} layouts",
            hint=f"give {option('blocks', min_blocks)} or more: two blocks for each layout",
        )
    if not stopping.min_blocks_explicit:
        stopping = replace(stopping, min_blocks=max(stopping.min_blocks, min_blocks))
    return replace(plan, stopping=stopping, layouts=draw_layouts(plan.seed, count, addresses))


def longer_path(path: str, extra_bytes: int) -> str:
    """Return an absolute path of the same file that is ``extra_bytes`` longer.

    The extra bytes are slashes: several slashes count as one slash (POSIX.1-2017, 4.13). The kernel
    puts the path on the stack of the program, so a longer path moves the stack.
    """
    folder, name = os.path.split(os.path.abspath(path))
    return f"{folder.rstrip('/')}{'/' * (1 + extra_bytes)}{name}"


Linker = Literal["lld", "mold", "objects"]
"""Linker of layouts; ``objects`` is the default linker, with object files in a random order."""
SOURCE_SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cxx", ".m", ".s", ".S"})
_SECTION_FLAGS = ("-ffunction-sections", "-fdata-sections")
_OPTIONS_WITH_VALUE = frozenset(
    {"-I", "-L", "-l", "-D", "-U", "-include", "-isystem", "-x", "-Xlinker"}
)
"""Options of a compiler after which the next argument may be a value."""


class Compilation(Struct, frozen=True):
    """The parts of a command line that compiles and links a program."""

    compiler: str
    flags: tuple[str, ...]
    """All arguments except sources, objects, libraries and the output."""
    sources: tuple[str, ...]
    objects: tuple[str, ...]
    """Object files and archives in the command line."""
    libraries: tuple[str, ...]
    """Options ``-l`` and ``-L`` in their order, which must follow the objects."""
    output: str

    def compile_lines(self, objects: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return a command for each source, which compiles it into the object at the same index."""
        return tuple(
            (self.compiler, *_SECTION_FLAGS, *self.flags, "-c", source, "-o", object_file)
            for source, object_file in zip(self.sources, objects, strict=True)
        )

    def link_line(
        self, objects: Sequence[str], output: str, linker: Linker, seed: int
    ) -> tuple[str, ...]:
        """Return the command that links the program of one layout."""
        inputs = [*objects, *self.objects]
        options: tuple[str, ...] = ()
        if linker == "lld":
            options = ("-fuse-ld=lld", f"-Wl,--shuffle-sections=.text*={seed}")
        elif linker == "mold":
            options = ("-fuse-ld=mold", f"-Wl,--shuffle-sections={seed}")
        else:
            random.Random(seed).shuffle(inputs)
        return (self.compiler, *self.flags, *options, *inputs, *self.libraries, "-o", output)


def parse_compilation(arguments: Sequence[str]) -> Compilation:
    """Return the parts of ``CC [FLAGS] SOURCES… [LIBRARIES] [-o PROGRAM]``.

    Raise `UnusableInput` if there is no source and no object, or if an option (``-c``, ``-S``,
    ``-E``) prevents linking.
    """
    if not arguments:
        raise _unusable_line("it does not name a compiler")
    compiler, *compiler_arguments = arguments
    flags: list[str] = []
    sources: list[str] = []
    objects: list[str] = []
    libraries: list[str] = []
    output = "a.out"
    argument_iterator = iter(compiler_arguments)
    for argument in argument_iterator:
        if argument in ("-c", "-S", "-E", "-shared"):
            raise _unusable_line(f"with {argument} it does not build a program")
        if argument == "-o":
            output = next(argument_iterator, "")
        elif argument in _OPTIONS_WITH_VALUE:
            target = libraries if argument in ("-l", "-L") else flags
            target.extend((argument, next(argument_iterator, "")))
        elif argument.startswith(("-l", "-L")):
            libraries.append(argument)
        elif argument.startswith("-"):
            flags.append(argument)
        elif PurePath(argument).suffix in SOURCE_SUFFIXES:
            sources.append(argument)
        elif PurePath(argument).suffix in (".o", ".a", ".so"):
            objects.append(argument)
        else:
            raise _unusable_line(f"{argument!r} is neither an option nor a source nor an object")
    if not sources and not objects:
        raise _unusable_line("it names no source and no object")
    return Compilation(
        compiler, tuple(flags), tuple(sources), tuple(objects), tuple(libraries), output
    )


def _unusable_line(reason: str) -> UnusableInput:
    return UnusableInput(
        f"the compiler's command line cannot be used: {reason}",
        hint="write a line such as: equipoise layouts -- cc -O2 main.c list.c -lm -o program",
    )
