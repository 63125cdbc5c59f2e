"""Build programs before a campaign: for a level of a factor, a revision, or a memory layout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.design.commands import refuse_in_shell_line
from equipoise.design.layouts import Compilation, Linker
from equipoise.measure.abandoned import BUILD_VARIABLE, end_build
from equipoise.measure.untimed import SHELL, describe_status, end_group, stderr_suffix, tail
from equipoise.model.errors import ConditionFailed, EquipoiseError, UnusableInput
from equipoise.shared.spelling import option

BUILDS_VARIABLE = "EQUIPOISE_BUILDS"
"""Variable with the folder for builds of revisions."""
MAX_LEVEL_LETTERS = 40
"""Maximum number of letters of a level in the name of its folder; file systems limit names."""
_MIN_FREE_BYTES = 1 << 20
"""Free space below which the disk of a failed build counts as full."""
_MAX_ERROR_LINES = 5
"""Maximum number of lines of a compiler's output in an error message."""


def build_levels(
    lines: Mapping[str, str], parent: Path, environment: Mapping[str, str], working_folder: str
) -> dict[str, str]:
    """Build each level in a new folder inside ``parent``; return the folders by level.

    ``lines`` has the shell line that builds each level. The line names the folder as ``{build}`` or
    ``$EQUIPOISE_BUILD``. The folders stay, so that a resumed campaign runs the same programs. Raise
    `ConditionFailed` if a line fails. Raise `UnusableInput` if the shell would misread the folder's
    name in place of ``{build}``.
    """
    for line in lines.values():
        refuse_in_shell_line(
            line,
            {"build": os.path.abspath(parent)},
            hint=f'write "${BUILD_VARIABLE}" instead of {{build}}, or choose a '
            f"{option('ledger')} in another folder",
        )
    build_folders: dict[str, str] = {}
    for level, line in lines.items():
        parent.mkdir(parents=True, exist_ok=True)
        prefix = re.sub(r"[^\w.-]", "_", level)[:MAX_LEVEL_LETTERS] + "-"
        folder = build_folders[level] = tempfile.mkdtemp(prefix=prefix, dir=os.path.abspath(parent))
        command = line.replace("{build}", folder)
        status, output = _run_build(command, working_folder, folder, environment)
        if status != 0:
            raise ConditionFailed(
                f"{level} cannot be built: {describe_status(status)} of the line `{line}`"
                + stderr_suffix(output, ""),
                hint="run the line by hand with sh in the working folder, and correct it",
            )
    return build_folders


def build_revision(
    line: str, folder: Path, tree: Path, environment: Mapping[str, str], revision: str
) -> None:
    """Run the shell line that builds a revision.

    The line runs in ``folder``, which is the working tree ``tree`` or a folder inside the tree.
    ``$EQUIPOISE_BUILD`` has the path of the tree, and marks the processes of the build. Raise
    `ConditionFailed` with the end of the output if the line fails.
    """
    status, output = _run_build(line, str(folder), str(tree), environment)
    if status == 0:
        return
    hint = "run the line by hand in a fresh clone, which lacks files that are not committed"
    # A compiler that finds the disk full often cannot write its error to the same disk.
    if shutil.disk_usage(tree).free < _MIN_FREE_BYTES:
        hint = f"the disk of {tree} is full: set {BUILDS_VARIABLE} to a folder on another disk"
    raise ConditionFailed(
        f"{revision} cannot be built: {describe_status(status)} of the line `{line}`"
        + stderr_suffix(output, "its output: "),
        hint=hint,
    )


def _run_build(
    line: str, working_folder: str, build_folder: str, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run the shell line of a build; return its exit status and the end of its output.

    After a successful build, its background processes continue. If a build fails or is interrupted,
    all processes that it started are ended.
    """
    # A file, not a pipe: a process in the background would hold a pipe open.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [SHELL, "-c", line],
            env={**environment, BUILD_VARIABLE: build_folder},
            cwd=working_folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        succeeded = False
        try:
            # The process is not reaped yet, so its group keeps its number until the group is ended.
            end = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            succeeded = end is not None and (end.si_code, end.si_status) == (os.CLD_EXITED, 0)
        finally:
            if not succeeded:
                end_group(process)
                end_build(build_folder)
        return process.wait(), tail(output.fileno())


class Layouts(Struct, frozen=True):
    """Programs that differ only in their memory layout."""

    programs: tuple[Path, ...]
    """Program of each layout, in the order of the seeds."""
    linker: Linker
    """Linker that made the layouts different."""
    distinct_count: int
    """Number of programs with different bytes."""


def host_linker() -> Linker:
    """Return a linker that shuffles sections; else ``objects``: the order of the objects varies."""
    if shutil.which("ld.lld"):
        return "lld"
    return "mold" if shutil.which("mold") else "objects"


def make_layouts(compilation: Compilation, folder: Path, seeds: range, linker: Linker) -> Layouts:
    """Compile into ``folder/objects`` and link ``folder/layout-SEED`` for each seed.

    Raise `UnusableInput`, with the end of the output, if the compiler is missing or fails. Raise
    `EquipoiseError` if the folder cannot be created.
    """
    object_folder = folder / "objects"
    try:
        object_folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EquipoiseError(
            f"cannot make the folder {object_folder}: {error.strerror}",
            hint=f"choose another folder with {option('output')}",
        ) from None
    objects = [
        str(object_folder / f"{number}-{Path(source).stem}.o")
        for number, source in enumerate(compilation.sources)
    ]
    programs: list[Path] = []
    # A killed compiler leaves temporary files.
    with tempfile.TemporaryDirectory(dir=object_folder) as temporary_folder:
        for line in compilation.compile_lines(objects):
            _run_compiler(line, temporary_folder)
        for seed in seeds:
            program = folder / f"layout-{seed}"
            link_line = compilation.link_line(objects, str(program), linker, seed)
            _run_compiler(link_line, temporary_folder)
            programs.append(program)
    distinct_count = len({program.read_bytes() for program in programs})
    return Layouts(tuple(programs), linker, distinct_count)


def _run_compiler(argv: tuple[str, ...], temporary_folder: str) -> None:
    environment = os.environ | {"TMPDIR": os.path.abspath(temporary_folder)}
    try:
        process = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", check=False, env=environment
        )
    except OSError as error:
        raise UnusableInput(
            f"cannot start the compiler {argv[0]}: {error.strerror}",
            hint="install it, or correct its name",
        ) from None
    if process.returncode != 0:
        output = "\n".join(process.stderr.strip().splitlines()[-_MAX_ERROR_LINES:])
        raise UnusableInput(
            f"{shlex.join(argv)} failed:\n{output}", hint="correct what the compiler reports"
        )
