"""Hostile surroundings of one command: variables, streams, limits, folders, users, signals."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos import invariants
from tests.chaos.commands import OLD_PAGE, OPEN, PAIR
from tests.chaos.kills import Outcome
from tests.chaos.processes import Family, children, start, subreaper
from tests.chaos.workplace import ENTRY, Workplace, restored

COMPARE = ("compare", *PAIR, "--blocks", "5", *OPEN)
NAMED = ("compare", "-n", "ä", "-n", "→ slow", *PAIR, "--blocks", "5", *OPEN)
LIST = ("list",)
SHOW = ("show", "last")
DONE = frozenset({0})
REFUSED = frozenset({2})
EITHER = frozenset({0, 2})
SOMEHOW = frozenset({0, 2, 74})
NOT_WRITTEN = frozenset({74})
ANOTHER_USER = 54321
"""A user without an account."""
AS_ANOTHER = f"{sys.executable} -m tests.chaos.another_user {ANOTHER_USER}"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is hostile about one run of a command."""

    command: tuple[str, ...] = COMPARE
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Variables to set; None removes one. ``{work}`` is the working folder."""
    shell: str = 'exec "$@"'
    """Line of a shell that runs the command as ``"$@"``."""
    allowed: frozenset[int] = DONE
    silent: bool = False
    """Whether standard error can take no complaint."""
    ledger: str | None = "decided.db"
    owner: int = 0
    """User to whom the folders of the case belong."""
    root_only: bool = False


def _limit(what: str) -> str:
    return f'ulimit {what}; exec "$@"'


def _wrapped(prefix: str) -> str:
    return f'exec {prefix} "$@"'


_PLAIN: dict[str, dict[str, str | None]] = {
    "HOME is not set": {"HOME": None, "XDG_STATE_HOME": None},
    "HOME does not exist": {"HOME": "/no/such", "XDG_STATE_HOME": None},
    "HOME cannot be written": {"HOME": "/proc", "XDG_STATE_HOME": None},
    "TMPDIR has spaces and newlines": {"TMPDIR": "{work}/a folder\nof two lines"},
    "TMPDIR is relative": {"TMPDIR": "relative"},
    "TMPDIR is empty": {"TMPDIR": ""},
    "PATH is empty": {"PATH": ""},
    "PATH is not set": {"PATH": None},
    "LC_ALL is C": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "LC_ALL does not exist": {"LC_ALL": "xx_YY.UTF-8"},
    "standard streams are ASCII": {"PYTHONIOENCODING": "ascii"},
    "TERM is dumb": {"TERM": "dumb"},
    "TERM is not set": {"TERM": None},
    "COLUMNS is 1": {"COLUMNS": "1"},
    "COLUMNS is a word": {"COLUMNS": "many", "LINES": "-1"},
    "assertions are off": {"PYTHONOPTIMIZE": "2"},
    "Python warnings are errors": {"PYTHONWARNINGS": "error"},
    "LD_PRELOAD names a missing library": {"LD_PRELOAD": "/no/such/library.so"},
    "a variable is long": {"LONG": "x" * 100_000},
    "the clock's zone is unknown": {"TZ": "Nowhere/Else"},
}
_SHELLS = {
    "standard input is closed": 'exec "$@" <&-',
    "the reader of standard output has gone": '"$@" | head -c 1 >/dev/null',
    "umask is 000": 'umask 000; exec "$@"',
    "open files are limited to 64": _limit("-n 64"),
    "a core of memory is limited to 4 GiB": _limit("-v 4194304"),
    "the stack is limited to 1 MiB": _limit("-s 1024"),
    "SIGPIPE is ignored": _wrapped("env --ignore-signal=PIPE"),
    "SIGCHLD is ignored": _wrapped("env --ignore-signal=CHLD"),
    "SIGINT, SIGTERM and SIGHUP are ignored": _wrapped("env --ignore-signal=INT,TERM,HUP"),
    "every signal is blocked": _wrapped("env --block-signal"),
    "only one processor may be used": _wrapped("taskset --cpu-list 0"),
    "it runs with the lowest priority": _wrapped("nice -n 19"),
    "the working folder is odd": """
        odd=$(printf 'a\\377 b\\nc')
        mkdir "$odd"
        cp chaos-trial-* "$odd"
        cd "$odd"
        exec "$@"
    """,
}  # fmt: skip

CASES: dict[str, Surroundings] = {
    **{name: Surroundings(NAMED, variables) for name, variables in _PLAIN.items()},
    **{name: Surroundings(shell=line) for name, line in _SHELLS.items()},
    "TMPDIR does not exist": Surroundings(variables={"TMPDIR": "/no/such"}, allowed=EITHER),
    "TMPDIR cannot be written": Surroundings(variables={"TMPDIR": "/proc"}, allowed=EITHER),
    "standard output is full": Surroundings(
        SHOW, shell='exec "$@" >/dev/full', allowed=NOT_WRITTEN
    ),
    "standard output is full for a list": Surroundings(
        LIST, shell='exec "$@" >/dev/full', allowed=NOT_WRITTEN
    ),
    "standard output is full after a campaign": Surroundings(
        shell='exec "$@" >/dev/full', allowed=NOT_WRITTEN
    ),
    "standard output is full for a document": Surroundings(
        (*COMPARE, "--json", "-"), shell='exec "$@" >/dev/full', allowed=NOT_WRITTEN
    ),
    "standard output is closed": Surroundings(
        LIST, shell='exec "$@" >&-', allowed=frozenset({0, 74})
    ),
    "standard output is closed after a campaign": Surroundings(
        shell='exec "$@" >&-', allowed=frozenset({0, 74})
    ),
    "standard error is full": Surroundings(
        ("show", "nothing"), shell='exec "$@" 2>/dev/full', allowed=REFUSED, silent=True
    ),
    "standard error is closed": Surroundings(
        ("show", "nothing"), shell='exec "$@" 2>&-', allowed=REFUSED, silent=True
    ),
    "all streams are closed": Surroundings(
        shell='exec "$@" <&- >&- 2>&-', allowed=frozenset({0, 74}), silent=True
    ),
    "umask is 0777": Surroundings(shell='umask 0777; exec "$@"', allowed=EITHER),
    "open files are limited to 16": Surroundings(shell=_limit("-n 16"), allowed=EITHER),
    "open files are limited to 8": Surroundings(shell=_limit("-n 8"), allowed=EITHER),
    "memory is limited to 300 MiB": Surroundings(shell=_limit("-v 307200"), allowed=EITHER),
    "files are limited to 32 KiB": Surroundings(shell=_limit("-f 64"), allowed=SOMEHOW),
    "files are limited to 256 KiB": Surroundings(shell=_limit("-f 512"), allowed=SOMEHOW),
    "the working folder is deleted": Surroundings(
        shell='mkdir gone; cd gone; rmdir ../gone; exec "$@"', allowed=REFUSED
    ),
    "the working folder is deleted for a list": Surroundings(
        LIST, shell='mkdir gone; cd gone; rmdir ../gone; exec "$@"', allowed=EITHER
    ),
    "EQUIPOISE_LEDGER is a folder": Surroundings(
        variables={"EQUIPOISE_LEDGER": "/"}, allowed=REFUSED
    ),
    "EQUIPOISE_LEDGER is a device": Surroundings(
        variables={"EQUIPOISE_LEDGER": "/dev/null"}, allowed=REFUSED
    ),
    "clone3 is forbidden": Surroundings(
        shell=_wrapped(f"{sys.executable} -m tests.chaos.without_clone3")
    ),
    "the user has no account": Surroundings(
        shell=_wrapped(AS_ANOTHER), owner=ANOTHER_USER, root_only=True
    ),
    "the user has no account and no home": Surroundings(
        variables={"HOME": None, "XDG_STATE_HOME": None},
        shell=_wrapped(AS_ANOTHER),
        owner=ANOTHER_USER,
        root_only=True,
    ),
    "processes are limited to 5": Surroundings(
        shell=_wrapped(f"{AS_ANOTHER} prlimit --nproc=5"),
        owner=ANOTHER_USER,
        allowed=frozenset({0, 2, 3}),
        root_only=True,
    ),
    "the ledger is another user's": Surroundings(
        shell=f"chmod 755 .equipoise; {_wrapped(AS_ANOTHER)}", allowed=REFUSED, root_only=True
    ),
    "the ledger is read-only": Surroundings(
        shell=f"chmod 444 .equipoise/*; chmod 555 .equipoise; {_wrapped(AS_ANOTHER)}",
        owner=ANOTHER_USER,
        allowed=REFUSED,
        root_only=True,
    ),
    "the working folder cannot be written": Surroundings(
        shell=_wrapped(AS_ANOTHER), ledger=None, allowed=REFUSED, root_only=True
    ),
}  # fmt: skip
_FROM_OTHERS = ("ERROR: ld.so:", "warning: setlocale", "sh: ", "bash: ")


def attack(place: Workplace, name: str) -> Outcome:
    """Run one command in hostile surroundings."""
    case = CASES[name]
    if case.root_only and os.geteuid() != 0:
        return Outcome(f"{name}: not tried, needs root", "not tried", True, ())
    began = time.monotonic()
    with subreaper(), restored(place) as canaries:
        family = Family(children())
        try:
            problems = _problems(place, case, family) + canaries.harmed()
        finally:
            family.end()
        trials = invariants.read_ledger(place.ledger).trials()
    return Outcome(
        name, "an environment", True, tuple(problems), trials, trials, time.monotonic() - began
    )


def _problems(place: Workplace, case: Surroundings, family: Family) -> list[str]:
    place.ledger.parent.mkdir()
    if case.ledger is not None:
        shutil.copyfile(place.work / case.ledger, place.ledger)
    place.report().write_text(OLD_PAGE)
    before = invariants.read_ledger(place.ledger)
    environment = _environment(place, case.variables)
    if case.owner:
        _give(place, case.owner)
    line = ("/bin/sh", "-c", case.shell, "sh", *ENTRY, *case.command)
    ended = start(line, place.work, environment, family, place.folder / "said").wait(family, 180.0)
    kept = "\n".join(line for line in ended.err.splitlines() if not line.startswith(_FROM_OTHERS))
    ended = type(ended)(ended.status, ended.out, kept)
    if case.silent:
        ended = type(ended)(ended.status, ended.out, "cannot be told")
    problems = invariants.answer_is_fit(ended, case.allowed, "the command")
    problems += invariants.ledger_is_intact(place.ledger)
    after = invariants.read_ledger(place.ledger)
    problems += invariants.nothing_is_lost(before, after, "by the command")
    left = invariants.nothing_is_left(place, family)
    if left:
        line = (*ENTRY, "doctor", "--quiet")
        start(line, place.work, place.environment(), family, place.folder / "doctor").wait(
            family, 180.0
        )
        left = invariants.nothing_is_left(place, family)
    return problems + left


def _environment(place: Workplace, variables: Mapping[str, str | None]) -> dict[str, str]:
    environment = place.environment()
    root = Path(__file__).parents[2]
    environment["PYTHONPATH"] = f"{root}:{root / 'packages/equipoise/src'}"
    for name, value in variables.items():
        if value is None:
            environment.pop(name, None)
            continue
        environment[name] = value.replace("{work}", str(place.work))
        if name == "TMPDIR" and value and not value.startswith(("/no", "/proc")):
            (place.work / environment[name]).mkdir()
    return environment


def _give(place: Workplace, owner: int) -> None:
    """Let another user own the folders of the case, and pass through those above."""
    for folder in (place.work, place.temporary, place.home):
        for entry in (folder, *folder.rglob("*")):
            os.chown(entry, owner, owner, follow_symlinks=False)
    for above in (place.folder, *place.folder.parents):
        mode = above.stat().st_mode
        if not mode & 0o001:
            above.chmod(mode | 0o001)
