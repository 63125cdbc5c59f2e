"""Which of the C library's tunables are in force for a condition: asked of its own loader.

``LOADER --list-tunables`` prints what ``GLIBC_TUNABLES`` came to (ld.so(8), from glibc 2.33 on).
A name that the loader does not know, or a value out of its range, it ignores without a word.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from equipoise.measure.surroundings.host import Unknown

VARIABLE = "GLIBC_TUNABLES"
_LINE = re.compile(r"^(?P<name>[\w.]+): (?P<value>\S+) \(min: .*\)$")


def tunables_asked_for(environment: Mapping[str, str]) -> dict[str, str]:
    """What ``GLIBC_TUNABLES`` says, by name."""
    settings = environment.get(VARIABLE, "").split(":")
    return {
        name: value for name, _, value in (setting.partition("=") for setting in settings) if name
    }


def ignored_tunables(
    loader: str, environment: Mapping[str, str], timeout_s: float = 10.0
) -> tuple[str, ...]:
    """What was asked for and is not in force, in words; empty if all of it is.

    Parameters
    ----------
    loader
        The dynamic loader of the program.
    environment
        The complete environment of the condition.

    Raises
    ------
    Unknown
        The loader does not tell.
    """
    in_force = _in_force(loader, environment, timeout_s)
    ignored: list[str] = []
    for name, asked in tunables_asked_for(environment).items():
        if name not in in_force:
            ignored.append(f"{loader} knows no tunable {name!r}")
        elif _number(asked) is None or _number(asked) != _number(in_force[name]):
            ignored.append(f"{name} is {in_force[name]}, not {asked}")
    return tuple(ignored)


def _in_force(loader: str, environment: Mapping[str, str], timeout_s: float) -> dict[str, str]:
    try:
        done = subprocess.run(
            [loader, "--list-tunables"],
            env={name: value for name, value in environment.items() if name != "LD_PRELOAD"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unknown(f"{loader} took longer than {timeout_s:g} s") from None
    except OSError as error:
        raise Unknown(f"{loader}: {error.strerror}") from None
    lines = done.stdout.decode("utf-8", "backslashreplace").splitlines()
    found = {line["name"]: line["value"] for line in map(_LINE.match, lines) if line}
    if done.returncode != 0 or not found:
        raise Unknown(f"{loader} lists no tunables")
    return found


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
