"""The table of a server in a study: ``[workload.server]``, or ``server`` of a level."""

from __future__ import annotations

import signal

from equipoise.model.plan import ServerTrial
from equipoise.model.study import ServerWorkload, Words
from equipoise.studies.table import Table, one_of

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
PLACEHOLDERS = ("folder", "port")
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
    if ready is None and not any("{port}" in word for word in start):
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
    )
    table.finish()
    return found, client


def _trial(table: Table) -> ServerTrial:
    asked = table.text("trial") or "life"
    for trial in _TRIALS:
        if trial == asked:
            return trial
    raise table.fail("trial", f"a trial cannot be {asked!r}", one_of(asked, _TRIALS))
