"""What differs in the settings that two conditions declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from equipoise.model.plan import Condition, Process, Server
from equipoise.why.differences.changes import Setting

_PATHS = {"LD_PRELOAD": "preload", "LD_LIBRARY_PATH": "library path"}


def settings(conditions: tuple[Condition, Condition]) -> tuple[Setting, ...]:
    """Return the settings that the baseline and the candidate declare differently.

    Names are ``program``, ``argument 2``, ``environment LANG``, ``preload``, ``library path``,
    ``working folder``, ``cpus``, ``huge pages``, ``random addresses``, ``before each trial``, and
    the same after ``server``.
    """
    baseline, candidate = conditions
    declared = (
        *_arguments("", baseline.command, candidate.command),
        *_environment("", baseline.environment, candidate.environment),
        *_process("", baseline.process, candidate.process),
        Setting("before each trial", baseline.hooks.prepare, candidate.hooks.prepare),
        *_server(baseline.server, candidate.server),
    )
    return tuple(setting for setting in declared if setting.baseline != setting.candidate)


def _arguments(prefix: str, baseline: Sequence[str], candidate: Sequence[str]) -> Iterator[Setting]:
    """Yield the program and the arguments that differ.

    An argument has its place in the candidate, or, where the candidate lacks it, in the baseline.
    """
    yield Setting(f"{prefix}program", _at(baseline, 0), _at(candidate, 0))
    ours, theirs = baseline[1:], candidate[1:]
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    for kind, begin, end, other_begin, other_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        for step in range(max(end - begin, other_end - other_begin)):
            one = ours[begin + step] if begin + step < end else None
            other = theirs[other_begin + step] if other_begin + step < other_end else None
            place = 1 + (begin if other is None else other_begin) + step
            yield Setting(f"{prefix}argument {place}", one, other)


def _at(words: Sequence[str], place: int) -> str | None:
    return words[place] if place < len(words) else None


def _environment(
    prefix: str, baseline: Mapping[str, str], candidate: Mapping[str, str]
) -> Iterator[Setting]:
    for key in dict.fromkeys((*baseline, *candidate)):
        name = _PATHS.get(key, f"environment {key}")
        yield Setting(f"{prefix}{name}", baseline.get(key), candidate.get(key))


def _process(prefix: str, baseline: Process, candidate: Process) -> Iterator[Setting]:
    shown: dict[str, Callable[[Process], str | None]] = {
        "working folder": lambda process: process.working_folder,
        "cpus": lambda process: None if process.cpus is None else ",".join(map(str, process.cpus)),
        "huge pages": lambda process: _on_or_off(process.huge_pages),
        "random addresses": lambda process: _on_or_off(process.random_addresses),
    }
    for name, show in shown.items():
        yield Setting(f"{prefix}{name}", show(baseline), show(candidate))


def _server(baseline: Server | None, candidate: Server | None) -> Iterator[Setting]:
    if baseline is None or candidate is None:
        yield Setting("server", _command(baseline), _command(candidate))
        return
    prefix = "server "
    yield from _arguments(prefix, baseline.start, candidate.start)
    yield from _environment(prefix, baseline.environment, candidate.environment)
    yield from _process(prefix, baseline.process, candidate.process)


def _command(server: Server | None) -> str | None:
    return None if server is None else " ".join(server.start)


def _on_or_off(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"
