"""Commands around servers, run through a launcher, and the user that servers run as."""

from __future__ import annotations

import grp
import os
import pwd
import random
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.measure.launcher import Launcher, Report, Request, User
from equipoise.measure.untimed import describe_signal, stderr_suffix
from equipoise.model.errors import ConditionFailed

UNPRIVILEGED = ("postgres", "nobody")
"""Users to run a server that refuses root, in order of preference."""
FULL_DISK_HINT = "make room there, or set TMPDIR to a folder of a larger disk"
_TEST = "/usr/bin/test"
_FULL_DISK = re.compile(
    r"no space left|disk (is )?full|could not (write|extend).*space|\berr(or|no)[:=]? 28\b",
    re.IGNORECASE,
)
_GROUPS = range(61184, 65520)
"""Numbers that no system gives to accounts; systemd draws its dynamic users from them too."""
_DRAWS = 50
_GROUP_MAP = Path("/proc/self/gid_map")


class ServerCommand(Struct, frozen=True):
    """One command around a server."""

    key: str
    """Key of the command in a study."""
    condition: str
    """Name of the condition."""
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    timeout_s: float
    user: User | None = None

    @property
    def subject(self) -> str:
        """Beginning of each message about the command."""
        return f"the {self.key} command of the server of {self.condition}"

    def error(self, problem: str) -> ConditionFailed:
        """Return the error for a problem with the command."""
        return ConditionFailed(
            f"{self.subject} {problem}", hint=f"see {self.key} in the table of the server"
        )


class Commands:
    """Runner of commands, one after the other, through a launcher made when it is needed."""

    def __init__(self, launcher: Callable[[], Launcher]) -> None:
        self._make_launcher = launcher
        self._launcher: Launcher | None = None

    def close(self) -> None:
        """End the launcher, and what it runs; a second call does nothing."""
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def succeeds(self, command: ServerCommand) -> bool:
        """Return whether a command succeeds; raise `ConditionFailed` if it cannot be run."""
        return self._report(command).exit == 0

    def run(self, command: ServerCommand) -> None:
        """Run a command to its end.

        Raise `ConditionFailed` if it cannot be run, fails or takes too long.
        """
        report = self._report(command)
        if report.timed_out:
            raise command.error(f"failed: timed out after {command.timeout_s:g} s")
        if report.exit != 0:
            raise full_disk(
                f"{command.subject} failed", report.error_tail, command.folder
            ) or command.error(f"failed: {describe_end(report)}{stderr_suffix(report.error_tail)}")

    def _report(self, command: ServerCommand) -> Report:
        self._launcher = self._launcher or self._make_launcher()
        request = Request(
            command.argv,
            command.environment,
            command.folder,
            timeout_s=command.timeout_s,
            user=command.user,
        )
        report = self._launcher.run(request)
        if report.could_not_start is not None:
            raise command.error(f"cannot be run: {report.could_not_start}")
        return report


def describe_end(report: Report) -> str:
    """Describe how a server or a command ended."""
    if report.could_not_start is not None:
        return f"could not be started: {report.could_not_start}"
    if report.signal is not None:
        return describe_signal(report.signal)
    return f"exit status {report.exit}"


def full_disk(failure: str, output: str, folder: str) -> ConditionFailed | None:
    """Return the error for a full disk, if the output of what failed in a folder shows one."""
    line = next((line.strip() for line in output.splitlines() if _FULL_DISK.search(line)), None)
    if line is None:
        return None
    return ConditionFailed(
        f"{failure}: the disk of {Path(folder).parent} is full: {line}", hint=FULL_DISK_HINT
    )


def unprivileged_user(name: str, group: int | None) -> User | None:
    """Return the user of a condition's server that refuses root; ``None`` where we are not root.

    ``group`` replaces the account's own group. Raise `ConditionFailed` if there is no such user.
    """
    if os.geteuid() != 0:
        return None
    for user in UNPRIVILEGED:
        try:
            account = pwd.getpwnam(user)
        except KeyError:
            continue
        return User(account.pw_uid, account.pw_gid if group is None else group)
    raise ConditionFailed(
        f"the server of {name} refuses to run as root, and there is no user "
        + " or ".join(UNPRIVILEGED),
        hint="run Equipoise as another user than root",
    )


def private_group() -> int | None:
    """Draw a group number that no account has; ``None`` if this user namespace has none.

    Other processes run as `postgres` or `nobody` too. Without this group they can neither enter a
    server's folder nor trace its processes (the kernel compares users and groups).
    """
    mapped = _mapped_groups()
    for group in random.SystemRandom().sample(_GROUPS, _DRAWS):
        if any(group in numbers for numbers in mapped):
            try:
                grp.getgrgid(group)
            except KeyError:
                return group
    return None


def _mapped_groups() -> list[range]:
    """Return the groups that this user namespace has (user_namespaces(7))."""
    try:
        lines = _GROUP_MAP.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        # A kernel without user namespaces has every group.
        return [_GROUPS]
    starts_and_counts = ((int(first), int(count)) for first, _, count in map(str.split, lines))
    return [range(first, first + count) for first, count in starts_and_counts]


def check_writable(folder: str, user: User, commands: Commands, name: str) -> None:
    """Raise `ConditionFailed` if the user of a condition's server cannot write in its folder."""
    argv = (shutil.which("test") or _TEST, "-w", folder)
    if not commands.succeeds(ServerCommand("test", name, argv, {}, "/", 10.0, user)):
        raise ConditionFailed(
            f"the server of {name} refuses to run as root, and user {user.uid} cannot write in "
            f"{folder}",
            hint="set TMPDIR to a folder that everybody may enter, such as /tmp",
        )
