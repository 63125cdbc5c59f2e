"""One life of a server: its place, its consumption, and the check that its settings took effect.

A wrapper may drop a variable, the loader may refuse a preload, a daemon may set its own CPUs: so a
setting in the plan may not be in force. Source: proc_pid_stat(5) and related pages.

A life also has its own folder, port, password and user, closed to other users.
"""

from __future__ import annotations

import grp
import os
import pwd
import random
import secrets
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
from msgspec import Struct

from equipoise.measure.environment.hardware import cpu_list
from equipoise.measure.launcher import Report, User
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import PADDING_VARIABLE, TUNABLES_VARIABLE, Server
from equipoise.model.record import Sample

LOOPBACK = "127.0.0.1"
MIN_PORT = 15000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
PASSWORD_BYTES = 24
"""Number of random bytes of a password; 192 bits cannot be guessed."""
_TRIES = 50
_GROUP_ONLY = 0o710
"""Mode of the outer folder of another user's server: only its own group may pass."""
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
UNPRIVILEGED = ("postgres", "nobody")
"""Users for a server that refuses root, in order of preference."""
_GROUPS = range(61184, 65520)
"""Numbers that systems do not give to accounts; systemd draws its dynamic users from them."""
_GROUP_MAP = Path("/proc/self/gid_map")


class Place(Struct, frozen=True):
    """Folder, port and password of one life of a server.

    The server's user owns the folder and the password file. The outer folder and the log stay ours,
    so that a process of that user cannot make us write through a link.
    """

    outer: str
    """Folder that contains all the rest, and is removed at the end."""
    port: int
    """TCP port of the loopback interface; free when the place was created."""

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
    """Create the folders and the password of one life in ``scratch``.

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
            # The path is too long for a socket's address; the server reports that itself.
            return False


def free_port() -> int:
    """Return a port of the loopback interface on which nobody listens now.

    The port is below those for outgoing connections, so that none of these takes it before the
    server does. If there are no such ports, the kernel chooses the port.
    """
    try:
        first_ephemeral = int(EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        # Without the range, let the kernel choose.
        first_ephemeral = 0
    for _ in range(_TRIES if first_ephemeral > MIN_PORT else 0):
        with suppress(OSError):
            return _bound(random.SystemRandom().randrange(MIN_PORT, first_ephemeral))
    return _bound(0)


def _bound(port: int) -> int:
    """Bind a port, or with 0 any; return it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.bind((LOOPBACK, port))
        return int(line.getsockname()[1])


def unprivileged_user(name: str, group: int | None) -> User | None:
    """Return the user for a condition's server that refuses root; ``None`` if we are not root.

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
    """Draw a group number without an account; ``None`` if this user namespace has none.

    Other processes may also run as `postgres` or `nobody`. Without this group they can neither
    enter a server's folder nor trace its processes (the kernel compares users and groups).
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
    """Return the groups of this user namespace (user_namespaces(7))."""
    try:
        lines = _GROUP_MAP.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        # A kernel without user namespaces has every group.
        return [_GROUPS]
    starts_and_counts = ((int(first), int(count)) for first, _, count in map(str.split, lines))
    return [range(first, first + count) for first, count in starts_and_counts]


_PROC = Path("/proc")
_PREFIX = "server_"
"""Prefix of the names of a server's metrics."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STAT_FIELDS = {
    "user_s": (10, 12),
    "sys_s": (11, 13),
    "minor_faults": (6, 7),
    "major_faults": (8, 9),
}
"""Indices, after the state in ``stat``, of the counts of a process and of its ended children."""
_SWITCHES = {
    "voluntary_ctxt_switches": "voluntary_switches",
    "nonvoluntary_ctxt_switches": "involuntary_switches",
}
"""Metrics of the counts in the ``status`` of a thread."""

Consumption = dict[str, float]
"""Consumption of all processes of a server since its start, by metric.

The consumption of a child is included in that of a parent that waits for it. The switches are only
those of the present threads. ``user_s`` and ``sys_s`` have the resolution of the kernel's ticks,
mostly 10 ms. ``pss_bytes`` counts shared memory once, and is missing if the kernel hides it;
``max_rss_bytes`` is the peak of the largest process.
"""


def consumption(processes: tuple[int, ...]) -> Consumption:
    """Add up the consumption of processes; a process that ends meanwhile counts 0."""
    stats = [fields for process in processes if (fields := _stat(process))]
    total: Consumption = {
        name: sum(stat[index] for stat in stats for index in indices)
        for name, indices in _STAT_FIELDS.items()
    }
    for name in ("user_s", "sys_s"):
        total[name] /= _TICKS_PER_S
    total |= dict.fromkeys(_SWITCHES.values(), 0)
    for process in processes:
        for line in _lines_of_threads(process):
            key, _, value = line.partition(":")
            if key in _SWITCHES:
                total[_SWITCHES[key]] += int(value)
    pss = [_kilobytes(process, "smaps_rollup", "Pss") for process in processes]
    known = [size for size in pss if size is not None]
    if known:
        total["pss_bytes"] = sum(known)
    peaks = (_kilobytes(process, "status", "VmHWM") for process in processes)
    total["max_rss_bytes"] = max((peak or 0 for peak in peaks), default=0)
    return total


def samples_of(before: Consumption, after: Consumption, life: Report | None) -> tuple[Sample, ...]:
    """Return the consumption of a server between two readings as samples.

    ``life`` is the launcher's report of the server's whole life, if it has ended. Only this report
    includes the switches of the processes that ended meanwhile, and the peak of all.
    """
    values: dict[str, float | None] = {name: after[name] - before[name] for name in _STAT_FIELDS}
    values |= {name: after.get(name) for name in ("pss_bytes", "max_rss_bytes")}
    if life is not None:
        values["max_rss_bytes"] = life.max_rss_bytes
        for name in _SWITCHES.values():
            life_value: int | None = getattr(life, name)
            values[name] = None if life_value is None else life_value - before[name]
    # The counts of a process for which nobody waited are lost: a difference below 0 is unknown.
    return tuple(
        Sample(_PREFIX + name, float(value))
        for name, value in values.items()
        if value is not None and value >= 0
    )


def any_listens(processes: tuple[int, ...], port: int) -> bool:
    """Return whether one of the processes listens on a TCP port."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            for line in psutil.Process(process).net_connections("tcp"):
                if line.status == psutil.CONN_LISTEN and line.laddr and line.laddr.port == port:
                    return True
    return False


def check_effect(name: str, server: Server, user: User | None, processes: tuple[int, ...]) -> None:
    """Refuse a server with a process in which a setting did not take effect.

    ``name`` is that of the condition; ``user`` should run the server, ``None`` is our own user. The
    first of the processes was started first. Raise `ConditionFailed`, which names the process and
    the setting.
    """
    for pid in processes:
        for problem in _problems(pid, server, user, is_first=pid == processes[0]):
            raise ConditionFailed(
                f"the server of {name} did not take effect: its process {pid} {problem}",
                hint="start the program itself, without a wrapper that changes its environment",
            )


def _problems(pid: int, server: Server, user: User | None, *, is_first: bool) -> Iterator[str]:
    environment, process = server.environment, server.process
    mapped = {line.split(maxsplit=5)[5] for line in _lines(pid, "maps") if line.count("/")}
    if not mapped:
        # It has ended meanwhile.
        return
    for library in environment.get("LD_PRELOAD", "").replace(":", " ").split():
        if "/" in library and os.path.realpath(library) not in mapped:
            yield f"does not map {library}"
    # Processes that the server starts may have other variables.
    tunables = environment.get(TUNABLES_VARIABLE) if is_first else None
    if tunables is not None and _lacks(pid, f"{TUNABLES_VARIABLE}={tunables}"):
        yield f"does not have {TUNABLES_VARIABLE}={tunables}"
    cpus = _status(pid, "Cpus_allowed_list")
    if process.cpus is not None and cpus and not set(cpu_list(cpus)) <= set(process.cpus):
        yield f"may use the CPUs {cpu_list(cpus)}, not only {list(process.cpus)}"
    if process.huge_pages is False and _status(pid, "THP_enabled") == "1":
        yield "gets transparent huge pages"
    if user is not None and _status(pid, "Uid") not in (None, "\t".join([str(user.uid)] * 4)):
        yield f"does not run as user {user.uid}"


def _lacks(pid: int, variable: str) -> bool:
    """Return whether a process started without a variable.

    Some servers overwrite their variables with a title; then the function returns False.
    """
    variables = "".join(_lines(pid, "environ"))
    is_whole = f"\0{PADDING_VARIABLE}=" in variables
    # The C library cuts its tunables apart in place.
    forms = (variable, variable.replace(":", "\0"))
    return is_whole and not any(form in variables for form in forms)


def _lines(process: int, name: str) -> list[str]:
    """Return the lines of a file of a process; empty if the process has ended."""
    try:
        return (_PROC / str(process) / name).read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _value(process: int, name: str, key: str) -> str | None:
    """Return the text after ``key:`` in a file of a process; ``None`` without such a line."""
    for line in _lines(process, name):
        before, colon, value = line.partition(":")
        if colon and before == key:
            return value.strip()
    return None


def _status(process: int, key: str) -> str | None:
    return _value(process, "status", key)


def _kilobytes(process: int, name: str, key: str) -> int | None:
    value = _value(process, name, key)
    return None if value is None else 1024 * int(value.split()[0])


def _stat(process: int) -> list[int]:
    # The name is in parentheses and may contain any character.
    text = " ".join(_lines(process, "stat"))
    return [int(word) for word in text.rpartition(")")[2].split()[1:]]


def _lines_of_threads(process: int) -> Iterator[str]:
    """Yield the lines of the ``status`` of every present thread."""
    try:
        threads = os.listdir(_PROC / str(process) / "task")
    except (FileNotFoundError, ProcessLookupError):
        return
    for thread in threads:
        yield from _lines(process, f"task/{thread}/status")
