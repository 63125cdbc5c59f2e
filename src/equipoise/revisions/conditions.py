"""From two checked-out revisions and some benchmarks to conditions and contrasts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equipoise.design.commands import find_program
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import BENCHMARK, REVISION, Condition, Contrast, Process, Revision
from equipoise.revisions.benchmark_tools import BenchmarkTool


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One process that is run of both revisions."""

    name: str
    command: tuple[str, ...]
    """A program with a slash is looked for in each revision."""


@dataclass(frozen=True, slots=True)
class CheckedOut:
    """One revision, where its files are."""

    role: str
    """``baseline`` or ``candidate``."""
    revision: Revision
    tree: str
    """The root of its working tree."""
    folder: str
    """Where in it the user stands: the build and the benchmarks run here."""
    instead_of: str
    """The root of the user's own working tree."""

    @property
    def shown(self) -> str:
        """``candidate HEAD (1a2b3c4d5e)``."""
        return f"{self.role} {self.revision.shown}"


def conditions_of_gate(
    benchmarks: Sequence[Benchmark],
    baseline: CheckedOut,
    candidate: CheckedOut,
    native_programs: Path,
    environment: Mapping[str, str],
    tool: BenchmarkTool | None = None,
) -> tuple[tuple[Condition, ...], tuple[Contrast, ...]]:
    """Each benchmark of the baseline and of the candidate, and what is compared with what.

    Parameters
    ----------
    environment
        In which programs without a slash are looked for.
    tool
        What reads the results of the benchmarks, if they report them in a form of their own.

    Raises
    ------
    UnusableInput
        A program is not there, or is one of the user's own working tree.
    """
    conditions: list[Condition] = []
    contrasts: list[Contrast] = []
    for benchmark in benchmarks:
        stratum = {BENCHMARK: benchmark.name} if len(benchmarks) > 1 else {}
        contrasts.append(Contrast(len(conditions), len(conditions) + 1, REVISION, stratum))
        for side in (baseline, candidate):
            program = _program(benchmark.command[0], side, native_programs, environment)
            condition = Condition(
                name=f"{benchmark.name}: {side.shown}" if stratum else side.shown,
                command=(program, *benchmark.command[1:]),
                levels={BENCHMARK: benchmark.name, REVISION: side.shown},
                process=Process(working_folder=side.folder),
            )
            conditions.append(condition if tool is None else _read_by(tool, condition, side))
    return tuple(conditions), tuple(contrasts)


def _read_by(tool: BenchmarkTool, condition: Condition, side: CheckedOut) -> Condition:
    return replace(
        condition,
        command=tool.reading(condition.command),
        environment=tool.environment_in(side.tree, instead_of=side.instead_of),
    )


def _program(
    name: str, side: CheckedOut, native_programs: Path, environment: Mapping[str, str]
) -> str:
    if "/" not in name:
        return find_program(name, native_programs, environment)
    if os.path.isabs(name) and _is_below(name, side.instead_of):
        raise UnusableInput(
            f"{name} is a program of your own working tree: it would be run as both revisions",
            hint=f"name it by its path in the repository, "
            f"./{os.path.relpath(name, side.instead_of)}",
        )
    path = os.path.normpath(os.path.join(side.folder, name))
    if os.path.isfile(path) and not os.access(path, os.X_OK):
        raise UnusableInput(f"{name} of the {side.shown} cannot be executed", hint="chmod +x it")
    if not os.path.isfile(path):
        raise UnusableInput(
            f"the {side.shown} has no program {name}",
            hint="let --build make it; the path is from the folder in which you run the gate",
        )
    return path


def _is_below(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep)
