"""The table of a server in a study: ``[workload.server]``, or ``server`` of a level."""

from __future__ import annotations

import signal
from collections.abc import Iterable

from equipoise.model.plan import SOCKET, ServerTrial
from equipoise.model.study import Factor, ServerWorkload, Study, Words, Workload
from equipoise.studies.reader.table import Table, one_of

SERVER_METRICS = (
    "server_user_s",
    "server_sys_s",
    "server_max_rss_bytes",
    "server_pss_bytes",
    "server_minor_faults",
    "server_major_faults",
    "server_voluntary_switches",
    "server_involuntary_switches",
)
"""What is known of every server that lives for one trial."""
OF_A_LIFE = ("server_voluntary_switches", "server_involuntary_switches")
"""Those that are known only when the server has ended."""
PLACEHOLDERS = ("folder", "port", "password_file")
"""What stands in the commands of a server and its client beside the factors."""
_TRIALS: tuple[ServerTrial, ...] = ("life", "interval")


def read_server(table: Table) -> tuple[ServerWorkload, Words]:
    """The server, and its client.

    Raises
    ------
    UnusableInput
        A key is missing, unknown or of a wrong type.
    """
    client = table.required("client", table.words, 'client = ["curl", "…"]')
    stop_signal = table.text("signal") or "TERM"
    if f"SIG{stop_signal.removeprefix('SIG')}" not in signal.Signals.__members__:
        raise table.fail("signal", f"there is no signal {stop_signal}", "as in TERM or INT")
    start = table.required("start", table.words, 'start = ["python3", "-m", "http.server"]')
    ready = table.words("ready")
    if ready is None and not any("{port}" in word or word.endswith(SOCKET) for word in start):
        raise table.fail(
            None, "ready is missing", "give a command that succeeds when the server is ready"
        )
    install, fill = table.words("install"), table.words("fill")
    found = ServerWorkload(
        start=start,
        install=install,
        fill=fill,
        prepare=table.words("prepare"),
        ready=ready,
        stop=table.words("stop"),
        stop_signal=stop_signal,
        ready_s=table.number("ready_s", above=0) or 30.0,
        path=table.texts("path") or (),
        needs=table.mapping("needs") or {},
        unprivileged=table.truth("unprivileged") or False,
        trial=_trial(table),
        keys=table.path,
    )
    table.finish()
    return found, client


def servers_of(workload: Workload, factors: Iterable[Factor]) -> tuple[ServerWorkload, ...]:
    """Every server of a study: the workload's own and those of levels."""
    levels = (level.server for factor in factors for level in factor.levels)
    return tuple(one for one in (workload.server, *levels) if one is not None)


def server_metrics(servers: tuple[ServerWorkload, ...]) -> tuple[str, ...]:
    """What is known of all of these servers."""
    if not servers:
        return ()
    lives = all(server.trial == "life" for server in servers)
    return tuple(metric for metric in SERVER_METRICS if lives or metric not in OF_A_LIFE)


def check_that_trials_are_of_one_kind(file: Table, study: Study) -> None:
    """Refuse lives beside intervals: they vary over different things.

    Raises
    ------
    UnusableInput
        Some server's trial is another one than some other's.
    """
    kinds = {server.trial for server in servers_of(study.workload, study.factors)}
    if len(kinds) > 1:
        raise file.table("factors").fail(
            None,
            "a trial is a whole life of one server and an interval of another",
            "give every server the same trial",
        )


def _trial(table: Table) -> ServerTrial:
    asked = table.text("trial") or "life"
    for trial in _TRIALS:
        if trial == asked:
            return trial
    raise table.fail("trial", f"a trial cannot be {asked!r}", one_of(asked, _TRIALS))
