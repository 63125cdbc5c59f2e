"""Running what is to be run around servers, and as whom.

Through a launcher, so that a command that is running ends when Equipoise is killed.
"""

from __future__ import annotations

import grp
import os
import pwd
import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from equipoise.measure.hooks import last_words
from equipoise.measure.launcher import Launcher, Report, Request, User
from equipoise.measure.servers.full_disk import full_disk
from equipoise.measure.servers.service import how_it_ended
from equipoise.model.errors import ConditionFailed

UNPRIVILEGED = ("postgres", "nobody")
"""Whom a server that refuses root runs as: the first of them that there is."""
TEST = "/usr/bin/test"
_GROUPS = range(61184, 65520)
"""Numbers that no system gives to accounts; systemd draws its dynamic users from them too."""
_DRAWS = 50
_GROUP_MAP = Path("/proc/self/gid_map")


@dataclass(frozen=True, slots=True)
class Errand:
    """One command around a server."""

    what: str
    """Its key in a study."""
    of: str
    """The name of the condition."""
    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    timeout_s: float
    user: User | None = None

    @property
    def failure(self) -> str:
        """That it failed, in words."""
        return f"the {self.what} command of the server of {self.of} failed"

    def failed(self, how: str) -> ConditionFailed:
        """The error for it."""
        return ConditionFailed(
            f"the {self.what} command of the server of {self.of} {how}",
            hint=f"see {self.what} in the table of the server",
        )


class Commands:
    """Runs errands one after the other.

    Parameters
    ----------
    launcher
        Makes the launcher for them, when the first one is to be run.
    """

    def __init__(self, launcher: Callable[[], Launcher]) -> None:
        self._make = launcher
        self._launcher: Launcher | None = None

    def close(self) -> None:
        """End the launcher, and what it runs; may be called again."""
        if self._launcher is not None:
            self._launcher.close()
            self._launcher = None

    def ask(self, errand: Errand) -> bool:
        """Whether the command succeeds.

        Raises
        ------
        ConditionFailed
            It cannot be run.
        """
        report = self._report(errand)
        return report.exit == 0

    def run(self, errand: Errand) -> None:
        """Run the command to its end.

        Raises
        ------
        ConditionFailed
            It cannot be run, failed or took too long.
        """
        report = self._report(errand)
        if report.timed_out:
            raise errand.failed(f"failed: timed out after {errand.timeout_s:g} s")
        if report.exit != 0:
            no_room = full_disk(errand.failure, report.error_tail, errand.folder)
            if no_room is not None:
                raise no_room
            raise errand.failed(f"failed: {how_it_ended(report)}{last_words(report.error_tail)}")

    def _report(self, errand: Errand) -> Report:
        if self._launcher is None:
            self._launcher = self._make()
        report = self._launcher.run(
            Request(
                argv=errand.words,
                environment=errand.environment,
                working_folder=errand.folder,
                timeout_s=errand.timeout_s,
                user=errand.user,
            )
        )
        if report.could_not_start is not None:
            raise errand.failed(f"cannot be run: {report.could_not_start}")
        return report


def unprivileged_user(name: str, group: int | None) -> User | None:
    """Return the user of a server that refuses root; ``None`` where we are not root ourselves.

    Parameters
    ----------
    group
        Group of the server in place of the account's own.

    Raises
    ------
    ConditionFailed
        There is nobody to run it as.
    """
    if os.geteuid() != 0:
        return None
    for user in UNPRIVILEGED:
        try:
            found = pwd.getpwnam(user)
        except KeyError:
            continue
        return User(found.pw_uid, found.pw_gid if group is None else group)
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
        if any(group in numbers for numbers in mapped) and not _has_name(group):
            return group
    return None


def _has_name(group: int) -> bool:
    try:
        grp.getgrgid(group)
    except KeyError:
        return False
    return True


def _mapped_groups() -> list[range]:
    """Return the groups that this user namespace has (user_namespaces(7))."""
    try:
        lines = _GROUP_MAP.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        # A kernel without user namespaces has every group.
        return [_GROUPS]
    starts_and_counts = ((int(first), int(count)) for first, _, count in map(str.split, lines))
    return [range(first, first + count) for first, count in starts_and_counts]


def check_reachable(folder: str, user: User, commands: Commands, name: str) -> None:
    """Refuse a folder that its user cannot write in.

    Raises
    ------
    ConditionFailed
        The user cannot enter the folder.
    """
    test = shutil.which("test") or TEST
    reachable = Errand("test", name, (test, "-w", folder), {}, "/", 10.0, user)
    if not commands.ask(reachable):
        raise ConditionFailed(
            f"the server of {name} refuses to run as root, and user {user.uid} cannot write in "
            f"{folder}",
            hint="set TMPDIR to a folder that everybody may enter, such as /tmp",
        )
