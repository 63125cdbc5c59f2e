"""Create the folder, port and password of a server; read its consumption; check its settings.

A life of a server lasts from its start to its end. Other users have no access to the folder and the
password. The consumption is read from /proc (proc_pid_stat(5) and related pages). The settings are
checked, because a wrapper may, for example, drop a variable. ``pids`` are a server's processes.
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
"""Smallest port that is drawn for a server."""
EPHEMERAL_PORTS_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
PASSWORD_BYTES = 24
"""Number of random bytes of a password; 192 bits cannot be guessed."""
_MAX_ATTEMPTS = 50
"""Maximum number of ports, or of group numbers, that are tried."""
_GROUP_ONLY_MODE = 0o710
"""Mode of the outer folder if another user runs the server: only its own group may pass."""
_PRIVATE_FOLDER_MODE, _PRIVATE_FILE_MODE = 0o700, 0o600
UNPRIVILEGED_USERS = ("postgres", "nobody")
"""Users for a server that refuses root, in order of preference."""
_FREE_GROUPS = range(61184, 65520)
"""Group numbers without accounts, from which systemd draws its dynamic users."""
_GROUP_MAP = Path("/proc/self/gid_map")


class ServerHome(Struct, frozen=True):
    """Folder, port and password of one life of a server.

    The server's user owns the folder and the password file. The outer folder and the log belong to
    us, so that the server's user cannot replace them by links.
    """

    outer_folder: str
    """Folder with all files of the life, which is removed at the end of the life."""
    port: int
    """TCP port of the loopback interface, which was free when this object was created."""

    @property
    def folder(self) -> str:
        """Working folder of the server; mode 0700."""
        return os.path.join(self.outer_folder, "home")

    @property
    def password_file(self) -> str:
        """File with a random password and a newline; mode 0600, new for each life."""
        return os.path.join(self.outer_folder, "password")

    @property
    def log(self) -> str:
        """File that receives the server's standard output; mode 0600."""
        return os.path.join(self.outer_folder, "log")

    def fill(self, text: str) -> str:
        """Replace the placeholders of a server by their values."""
        return (
            text.replace("{folder}", self.folder)
            .replace("{port}", str(self.port))
            .replace("{password_file}", self.password_file)
        )

    def fill_all(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Replace the placeholders in each argument of a command."""
        return tuple(self.fill(argument) for argument in command)

    def fill_values(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Replace the placeholders in each value of an environment."""
        return {name: self.fill(value) for name, value in environment.items()}


def new_home(scratch: Path, user: User | None, port: int) -> ServerHome:
    """Create the folders and the password of one life in ``scratch``.

    ``user`` runs the server; ``None`` is our own user. ``port`` is the TCP port of the server.
    """
    home = ServerHome(tempfile.mkdtemp(prefix="server-", dir=scratch), port)
    os.mkdir(home.folder, _PRIVATE_FOLDER_MODE)
    password = f"{secrets.token_hex(PASSWORD_BYTES)}\n"
    for path, text in ((home.password_file, password), (home.log, "")):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE_MODE)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    if user is not None:
        os.chown(home.folder, user.uid, user.gid)
        os.chown(home.password_file, user.uid, user.gid)
        os.chown(home.outer_folder, -1, user.gid)
        os.chmod(home.outer_folder, _GROUP_ONLY_MODE)
    return home


def accepts(address: str | tuple[str, int]) -> bool:
    """Return whether a program accepts connections on a Unix socket, or on a host and port."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as client:
        try:
            return client.connect_ex(address) == 0
        except OSError:
            # If the path is too long for a socket's address, the server reports that itself.
            return False


def free_port() -> int:
    """Return a port of the loopback interface on which nobody listens now.

    The port is below the ports for outgoing connections, so no such connection can take the port.
    If there are no ports below them, the kernel chooses.
    """
    try:
        first_ephemeral = int(EPHEMERAL_PORTS_FILE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        # The range of outgoing ports is unknown: the kernel chooses.
        first_ephemeral = 0
    for _ in range(_MAX_ATTEMPTS if first_ephemeral > MIN_PORT else 0):
        with suppress(OSError):
            return _bind_port(random.SystemRandom().randrange(MIN_PORT, first_ephemeral))
    return _bind_port(0)


def _bind_port(port: int) -> int:
    """Bind a port for a moment, and return its number; 0 stands for any free port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind((LOOPBACK, port))
        return int(listener.getsockname()[1])


def unprivileged_user(condition: str, group: int | None) -> User | None:
    """Return the user that runs a server that refuses root; ``None`` if we are not root.

    ``condition`` is the name of the condition. ``group`` replaces the account's own group. Raise
    `ConditionFailed` if this host has none of the `UNPRIVILEGED_USERS`.
    """
    if os.geteuid() != 0:
        return None
    for user_name in UNPRIVILEGED_USERS:
        try:
            account = pwd.getpwnam(user_name)
        except KeyError:
            continue
        return User(account.pw_uid, account.pw_gid if group is None else group)
    raise ConditionFailed(
        f"the server of {condition} refuses to run as root, and there is no user "
        + " or ".join(UNPRIVILEGED_USERS),
        hint="run Equipoise as a user other than root",
    )


def private_group() -> int | None:
    """Draw a group number that no account has; ``None`` if this user namespace has none.

    Other processes may also run as `postgres` or `nobody`. They lack this group, so they can
    neither enter a server's folder nor trace its processes.
    """
    group_ranges = _mapped_groups()
    for group in random.SystemRandom().sample(_FREE_GROUPS, _MAX_ATTEMPTS):
        if any(group in numbers for numbers in group_ranges):
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
        return [_FREE_GROUPS]
    starts_and_counts = ((int(first), int(count)) for first, _, count in map(str.split, lines))
    return [range(first, first + count) for first, count in starts_and_counts]


_PROC = Path("/proc")
_METRIC_PREFIX = "server_"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STAT_FIELDS = {
    "user_s": (10, 12),
    "sys_s": (11, 13),
    "minor_faults": (6, 7),
    "major_faults": (8, 9),
}
"""Indices in `_stat` of the value of a process, and of the value of its ended children."""
_SWITCH_METRICS = {
    "voluntary_ctxt_switches": "voluntary_switches",
    "nonvoluntary_ctxt_switches": "involuntary_switches",
}
"""Names of metrics, by the keys in the ``status`` file of a thread."""
Consumption = dict[str, float]
"""Consumption of all processes of a server since its start, by metric.

If a process waits for a child, the child's consumption is included. The context switches are only
of threads that still run. ``user_s`` and ``sys_s`` have the resolution of the kernel's ticks,
mostly 10 ms. ``pss_bytes`` counts shared memory once; the kernel may hide this value.
``max_rss_bytes`` is the peak of the largest process.
"""


def consumption(pids: tuple[int, ...]) -> Consumption:
    """Return the sum of the consumption of processes; a process that has ended counts 0."""
    stats = [fields for pid in pids if (fields := _stat(pid))]
    total: Consumption = {
        name: sum(stat[index] for stat in stats for index in indices)
        for name, indices in _STAT_FIELDS.items()
    }
    for name in ("user_s", "sys_s"):
        total[name] /= _TICKS_PER_S
    total |= dict.fromkeys(_SWITCH_METRICS.values(), 0)
    for pid in pids:
        for line in _thread_status_lines(pid):
            key, _, value = line.partition(":")
            if key in _SWITCH_METRICS:
                total[_SWITCH_METRICS[key]] += int(value)
    pss_sizes = [_bytes_of(pid, "smaps_rollup", "Pss") for pid in pids]
    known_sizes = [size for size in pss_sizes if size is not None]
    if known_sizes:
        total["pss_bytes"] = sum(known_sizes)
    peaks = (_bytes_of(pid, "status", "VmHWM") for pid in pids)
    total["max_rss_bytes"] = max((peak or 0 for peak in peaks), default=0)
    return total


def samples_of(
    before: Consumption, after: Consumption, life_report: Report | None
) -> tuple[Sample, ...]:
    """Return the consumption of a server between two readings as samples.

    ``life_report`` is the launcher's report if the server has ended; else ``None``. Only this
    report includes the switches of processes that ended, and the peak memory of all processes.
    """
    values: dict[str, float | None] = {name: after[name] - before[name] for name in _STAT_FIELDS}
    values |= {name: after.get(name) for name in ("pss_bytes", "max_rss_bytes")}
    if life_report is not None:
        values["max_rss_bytes"] = life_report.max_rss_bytes
        for name in _SWITCH_METRICS.values():
            life_value: int | None = getattr(life_report, name)
            values[name] = None if life_value is None else life_value - before[name]
    # If nobody waits for an ended process, its counts are lost, so a difference may be negative.
    return tuple(
        Sample(_METRIC_PREFIX + name, float(value))
        for name, value in values.items()
        if value is not None and value >= 0
    )


def any_listens(pids: tuple[int, ...], port: int) -> bool:
    """Return whether one of the processes listens on a TCP port."""
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            for connection in psutil.Process(pid).net_connections("tcp"):
                address = connection.laddr
                if connection.status == psutil.CONN_LISTEN and address and address.port == port:
                    return True
    return False


def check_effect(condition: str, server: Server, user: User | None, pids: tuple[int, ...]) -> None:
    """Check that all settings of a server took effect in each of the server's processes.

    ``condition`` is the name of the condition. ``user`` is the user that should run the server;
    ``None`` is our own user. The first of the processes ``pids`` started the others. Raise
    `ConditionFailed` with the process and the setting without effect.
    """
    for pid in pids:
        for problem in _problems(pid, server, user, is_first=pid == pids[0]):
            raise ConditionFailed(
                f"a setting of the server of {condition} did not take effect: "
                f"process {pid} {problem}",
                hint="start the server's program itself, without a wrapper that changes settings",
            )


def _problems(pid: int, server: Server, user: User | None, *, is_first: bool) -> Iterator[str]:
    """Yield a phrase such as "gets transparent huge pages" for each setting without effect."""
    environment, process = server.environment, server.process
    mapped_files = {line.split(maxsplit=5)[5] for line in _lines(pid, "maps") if line.count("/")}
    if not mapped_files:
        # The process has ended meanwhile.
        return
    for library in environment.get("LD_PRELOAD", "").replace(":", " ").split():
        if "/" in library and os.path.realpath(library) not in mapped_files:
            yield f"does not map {library}"
    # Processes that the server starts may have other variables.
    tunables = environment.get(TUNABLES_VARIABLE) if is_first else None
    if tunables is not None and _started_without(pid, f"{TUNABLES_VARIABLE}={tunables}"):
        yield f"does not have {TUNABLES_VARIABLE}={tunables}"
    cpus = _status(pid, "Cpus_allowed_list")
    if process.cpus is not None and cpus and not set(cpu_list(cpus)) <= set(process.cpus):
        yield f"may use the CPUs {cpu_list(cpus)}, not only {list(process.cpus)}"
    if process.huge_pages is False and _status(pid, "THP_enabled") == "1":
        yield "gets transparent huge pages"
    if user is not None and _status(pid, "Uid") not in (None, "\t".join([str(user.uid)] * 4)):
        yield f"does not run as user {user.uid}"


def _started_without(pid: int, variable: str) -> bool:
    """Return whether a process started without a variable, ``NAME=value``.

    Some servers overwrite their variables with a title. Then the result is False.
    """
    variables = "".join(_lines(pid, "environ"))
    is_complete = f"\0{PADDING_VARIABLE}=" in variables
    # The C library overwrites parts of the value of its tunables.
    spellings = (variable, variable.replace(":", "\0"))
    return is_complete and not any(spelling in variables for spelling in spellings)


def _lines(pid: int, name: str) -> list[str]:
    try:
        return (_PROC / str(pid) / name).read_text("utf-8", "replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _value(pid: int, name: str, key: str) -> str | None:
    """Return the text after ``key:`` in a file of a process; ``None`` without such a line."""
    for line in _lines(pid, name):
        line_key, colon, value = line.partition(":")
        if colon and line_key == key:
            return value.strip()
    return None


def _status(pid: int, key: str) -> str | None:
    return _value(pid, "status", key)


def _bytes_of(pid: int, name: str, key: str) -> int | None:
    value = _value(pid, name, key)
    return None if value is None else 1024 * int(value.split()[0])


def _stat(pid: int) -> list[int]:
    """Return the fields of ``/proc/PID/stat`` after the state; none if the process has ended."""
    # The name of the program is in parentheses and may contain any character.
    text = " ".join(_lines(pid, "stat"))
    return [int(number) for number in text.rpartition(")")[2].split()[1:]]


def _thread_status_lines(pid: int) -> Iterator[str]:
    try:
        threads = os.listdir(_PROC / str(pid) / "task")
    except (FileNotFoundError, ProcessLookupError):
        return
    for thread in threads:
        yield from _lines(pid, f"task/{thread}/status")
