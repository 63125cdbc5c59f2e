"""Making layouts: compiling once, and linking anew for every seed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from equipoise.design.layouts import Compilation, Linker
from equipoise.model.errors import EquipoiseError, UnusableInput

_LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts that were made."""

    programs: tuple[Path, ...]
    linker: Linker
    different: int
    """How many of them differ in their bytes."""


def linker_here() -> Linker:
    """What can shuffle sections here; the order of the objects is what is left without one."""
    if shutil.which("ld.lld"):
        return "lld"
    return "mold" if shutil.which("mold") else "objects"


def make_layouts(
    compilation: Compilation,
    folder: Path,
    seeds: range,
    linker: Linker,
    on_made: Callable[[int], None] = lambda _: None,
) -> Layouts:
    """Compile into ``folder/objects`` and link ``folder/layout-SEED`` for each seed.

    Parameters
    ----------
    on_made
        Called after each link with the number of layouts so far.

    Raises
    ------
    UnusableInput
        The compiler is missing, or does not take the line: its last words.
    EquipoiseError
        The folder cannot be made.
    """
    kept = folder / "objects"
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EquipoiseError(
            f"cannot make the folder {kept}: {error.strerror}", hint="name another with --output"
        ) from None
    objects = [
        str(kept / f"{number}-{Path(source).stem}.o")
        for number, source in enumerate(compilation.sources)
    ]
    programs: list[Path] = []
    # A compiler that is killed leaves its own temporary files.
    with tempfile.TemporaryDirectory(dir=kept) as temporary:
        for line in compilation.compile_lines(objects):
            _run(line, temporary)
        for seed in seeds:
            program = folder / f"layout-{seed}"
            _run(compilation.link_line(objects, str(program), linker, seed), temporary)
            programs.append(program)
            on_made(len(programs))
    different = len({program.read_bytes() for program in programs})
    return Layouts(tuple(programs), linker, different)


def _run(line: tuple[str, ...], temporary: str) -> None:
    environment = os.environ | {"TMPDIR": os.path.abspath(temporary)}
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, errors="replace", check=False, env=environment
        )
    except OSError as error:
        raise UnusableInput(
            f"cannot start {line[0]}: {error.strerror}", hint="check the name of the compiler"
        ) from None
    if done.returncode != 0:
        said = "\n".join(done.stderr.strip().splitlines()[-_LAST_LINES:])
        raise UnusableInput(
            f"{shlex.join(line)} failed:\n{said}", hint="correct what the compiler complains of"
        )
