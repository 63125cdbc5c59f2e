"""Folder, port, password and user of one life of a server, closed to other users."""

from __future__ import annotations

import grp
import os
import pwd
import random
import secrets
import socket
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from equipoise.measure.launcher import User
from equipoise.model.errors import ConditionFailed

LOOPBACK = "127.0.0.1"
LOWEST_PORT = 15000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
PASSWORD_BYTES = 24
"""Random bytes of a password; 192 bits cannot be guessed."""
_TRIES = 50
_GROUP_ONLY = 0o710
"""Mode of the outer folder of another user's server: only its own group may pass."""
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
UNPRIVILEGED = ("postgres", "nobody")
"""Users to run a server that refuses root, in order of preference."""
_GROUPS = range(61184, 65520)
"""Numbers that no system gives to accounts; systemd draws its dynamic users from them too."""
_GROUP_MAP = Path("/proc/self/gid_map")


class Place(Struct, frozen=True):
    """Folder, port and password of one life of a server.

    The server's user owns the folder and the password file. The outer folder and the log stay
    ours, so that no process of that user can make us write through a link.
    """

    outer: str
    """Folder that holds everything else here and is removed with it."""
    port: int
    """TCP port of the loopback interface; free when the place was made."""

    @property
    def folder(self) -> str:
        """Folder of the server; mode 0700."""
        return os.path.join(self.outer, "home")

    @property
    def password_file(self) -> str:
        """File with a random password and a newline; mode 0600, new for each life."""
        return os.path.join(self.outer, "password")

    @property
    def log(self) -> str:
        """File that receives the server's standard output; mode 0600."""
        return os.path.join(self.outer, "log")

    def fill(self, text: str) -> str:
        """Replace the placeholders of a server by their values."""
        return (
            text.replace("{folder}", self.folder)
            .replace("{port}", str(self.port))
            .replace("{password_file}", self.password_file)
        )

    def fill_all(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Replace the placeholders in each word."""
        return tuple(self.fill(word) for word in words)

    def fill_values(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Replace the placeholders in each value."""
        return {name: self.fill(value) for name, value in environment.items()}


def new_place(scratch: Path, user: User | None, port: int) -> Place:
    """Make the folders and the password of one life in ``scratch``.

    ``user`` runs the server; ``None`` is our own user. ``port`` is the TCP port of the place.
    """
    place = Place(tempfile.mkdtemp(prefix="server-", dir=scratch), port)
    os.mkdir(place.folder, _PRIVATE_FOLDER)
    password = f"{secrets.token_hex(PASSWORD_BYTES)}\n"
    for path, text in ((place.password_file, password), (place.log, "")):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    if user is not None:
        os.chown(place.folder, user.uid, user.gid)
        os.chown(place.password_file, user.uid, user.gid)
        os.chown(place.outer, -1, user.gid)
        os.chmod(place.outer, _GROUP_ONLY)
    return place


def accepts(address: str | tuple[str, int]) -> bool:
    """Return whether something accepts connections on a Unix socket, or on a host and port."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as line:
        try:
            return line.connect_ex(address) == 0
        except OSError:
            # The path is longer than a socket's address; the server says so itself.
            return False


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on now.

    The port lies below those that the kernel gives to outgoing connections, so that none of them
    takes it before the server does. Where that leaves no room, the kernel chooses the port.
    """
    try:
        first_ephemeral = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        # Without the range the kernel's own choice is as good as any.
        first_ephemeral = 0
    for _ in range(_TRIES if first_ephemeral > LOWEST_PORT else 0):
        with suppress(OSError):
            return _bound(random.SystemRandom().randrange(LOWEST_PORT, first_ephemeral))
    return _bound(0)


def _bound(port: int) -> int:
    """Bind a port, or with 0 any; return it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.bind((LOOPBACK, port))
        return int(line.getsockname()[1])


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
    for group in random.SystemRandom().sample(_GROUPS, _TRIES):
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
