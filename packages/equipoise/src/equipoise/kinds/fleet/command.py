"""Run the campaign of a fleet from the command line: begin, follow, analyse, show.

While the hosts measure, stderr shows a live table with a line for each host. If stderr is not a
terminal, it shows only problems.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from equipoise.campaign.conduct import Interrupted
from equipoise.cli.conducting import analyse, show_result
from equipoise.cli.options import HostOptions, OutputOptions
from equipoise.cli.streams import say
from equipoise.cli.work_bars import MIN_REDRAW_S
from equipoise.cluster.address import LocalWorkers
from equipoise.cluster.connection import ClusterAccess, running_scheduler
from equipoise.cluster.coordinator import HOST_TIMEOUT_S, FleetListener, FleetProgress, HostState
from equipoise.cluster.files import portable_builds
from equipoise.cluster.roster import DaskTransport
from equipoise.design.command_line import shell_line
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.fleet import conducting
from equipoise.kinds.fleet.conducting import FleetOptions, TransportContext
from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.ledger import Ledger, open_for_writing
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.quantities import counted
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.report.units import waiting_time
from equipoise.shared.safe_text import visible

FREE_TERMINAL_LINES = 4
"""Number of lines of the terminal that the table leaves free."""
PROBLEM_STATES: frozenset[HostState] = frozenset({"no answer", "failed", "missing"})
STATE_STYLES: dict[HostState, str] = {
    "failed": "red",
    "missing": "red",
    "no answer": "yellow",
    "measuring": "",
    "starting": "dim",
    "waiting": "dim",
    "ended": "",
}
"""Style of each state. Without room for all hosts, a table has the hosts in this order."""


def measure_fleet(
    plan: Plan,
    access: ClusterAccess,
    host_options: HostOptions,
    output: OutputOptions,
    *,
    build_lines: Mapping[str, str] | None = None,
    build_folders: Mapping[str, str] | None = None,
    warnings: Sequence[CampaignWarning] = (),
) -> int:
    """Measure a plan on every host of a cluster, and show the result over the hosts.

    The keys of ``build_lines`` and ``build_folders`` are names of levels of a study. The values are
    the shell line that builds the level, and the folder in which this machine built the level.
    """
    options = replace(
        _fleet_options(access, host_options, output),
        builds=portable_builds(build_lines or {}, plan.measure.working_folder),
        build_folders=tuple((build_folders or {}).values()),
    )
    return _follow(partial(conducting.start, plan, options, warnings=warnings), access, output)


def resume_fleet(
    record: RunRecord,
    limits: CampaignLimits,
    host_options: HostOptions,
    output: OutputOptions,
) -> int:
    """Resume the campaign of a fleet on its hosts, and show the result over the hosts."""
    terms = record.plan.terms
    assert isinstance(terms, FleetPlan), "only a coordinator's run has a cluster"
    cluster_options = host_options.cluster
    cluster_options = replace(cluster_options, cluster=cluster_options.cluster or terms.cluster)
    access = replace(host_options, cluster=cluster_options).access()
    assert access is not None
    options = _fleet_options(access, host_options, output)
    return _follow(partial(conducting.resume, record, limits, options), access, output)


def _fleet_options(
    access: ClusterAccess, host_options: HostOptions, output: OutputOptions
) -> FleetOptions:
    return FleetOptions(
        cluster=access.address.text,
        campaign_for_each_worker=isinstance(access.address, LocalWorkers),
        ship=host_options.ship,
        allow_concurrent=output.allow_concurrent,
        durable=output.durable,
        host_timeout_s=host_options.host_timeout or HOST_TIMEOUT_S,
    )


def _follow(
    start_or_resume: Callable[
        [TransportContext, Ledger, FleetListener], Coroutine[Any, Any, FleetProgress]
    ],
    access: ClusterAccess,
    output: OutputOptions,
) -> int:
    """Follow a fleet's campaign to the end, and show its result; return the exit status.

    Raise `KeyboardInterrupt` after a message if the user interrupted the campaign.
    """
    with (
        open_for_writing(output.ledger, durable=output.durable, host=output.host) as ledger,
        running_scheduler(access) as address,
    ):
        try:
            listener = _progress_listener(quiet=output.quiet, color=output.color)
            transport = DaskTransport(address, access.tls)
            progress = conducting.run_to_end(start_or_resume(transport, ledger, listener))
            return _show_fleet(progress, access, ledger, output)
        except Interrupted as interruption:
            say(
                "interrupted; hosts that answer stop, and nothing measured is lost",
                _resume_command(interruption.run_id, access),
            )
            raise KeyboardInterrupt from None


def _show_fleet(
    progress: FleetProgress, access: ClusterAccess, ledger: Ledger, output: OutputOptions
) -> int:
    """Report failed and missing hosts, then show the result; return the exit status.

    Raise `ConditionFailed` if the campaign failed on every host. Raise `UnusableInput` if no host
    has delivered a block.
    """
    failed_hosts, missing_hosts = progress.failed, progress.missing
    if len(failed_hosts) == len(progress.hosts):
        raise ConditionFailed(
            f"the campaign failed on every host: {failed_hosts[0].host}: {failed_hosts[0].problem}",
            hint=failed_hosts[0].hint,
        )
    for host in failed_hosts:
        say(f"the campaign failed on {host.host}: {host.problem}", host.hint)
    resume_line = _resume_command(progress.run_id, access)
    if missing_hosts:
        names = ", ".join(host.host for host in missing_hosts)
        if all(host.status.blocks == 0 for host in progress.hosts):
            raise UnusableInput(
                f"nothing has arrived from {names}: {missing_hosts[0].problem}",
                hint=f"run {resume_line} to try again",
            )
        say(
            f"{names} did not deliver all blocks: the result lacks the missing blocks",
            f"run {resume_line} to fetch the missing blocks",
        )
    return show_result(analyse(progress.run_id, ledger, output), output)


def _resume_command(run_id: str, access: ClusterAccess) -> str:
    """Return the command line that resumes a run, with the options that no ledger records."""
    argv = ["equipoise", "resume", run_id]
    if access.tls is not None:
        argv += ["--tls-ca", str(access.tls.authority), "--tls-cert", str(access.tls.certificate)]
        argv += ["--tls-key", str(access.tls.key)]
    if access.insecure:
        argv.append("--insecure")
    return shell_line(argv)


def _progress_listener(*, quiet: bool, color: bool) -> FleetListener:
    if quiet:
        return FleetListener()
    if not sys.stderr.isatty():
        return ProblemLines()
    return LiveTable(Console(stderr=True, no_color=not color))


class LiveTable(FleetListener):
    """A live table: the state, the blocks, the time and the problem of each host."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._drawn_at = 0.0

    def fleet_started(self, progress: FleetProgress) -> None:
        """Print the id of the campaign, and show the table."""
        line = f"campaign {progress.run_id} on {counted(len(progress.hosts), 'host')}"
        self._console.print(line, style="dim", highlight=False, markup=False)
        self._live.start()
        self._draw(progress)

    def progress_changed(self, progress: FleetProgress) -> None:
        """Show the new state of a host."""
        if time.monotonic() - self._drawn_at >= MIN_REDRAW_S:
            self._draw(progress)

    def fleet_ended(self) -> None:
        """Remove the table; the result shows each host."""
        self._live.stop()

    def _draw(self, progress: FleetProgress) -> None:
        max_rows = self._console.height - FREE_TERMINAL_LINES
        self._live.update(table_of_hosts(progress, max_rows), refresh=True)
        self._drawn_at = time.monotonic()


def table_of_hosts(progress: FleetProgress, max_rows: int) -> Table:
    """Return the table of a fleet with at most ``max_rows`` rows.

    If not all hosts fit, hosts with problems come first, and the last row counts the other hosts.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("host", no_wrap=True, overflow="ellipsis", max_width=32)
    table.add_column("state", no_wrap=True)
    for heading in ("blocks", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="ellipsis", no_wrap=True)
    if (problem := progress.scheduler_problem) is not None:
        text = visible(f"the scheduler gives no answer, trying again: {problem}")
        table.caption = Text(text, "yellow")
        table.caption_justify = "left"
    hosts = list(progress.hosts)
    if len(hosts) > max_rows:
        hosts.sort(key=lambda host: list(STATE_STYLES).index(host.state))
    visible_hosts = hosts if len(hosts) <= max_rows else hosts[: max(max_rows - 1, 0)]
    for host in visible_hosts:
        remark = host.status.stopped_because if host.state == "ended" else host.problem
        table.add_row(
            Text(visible(host.host)),
            Text(host.state, style=STATE_STYLES[host.state]),
            Text(str(host.status.blocks)),
            Text(waiting_time(host.status.running_s)),
            Text(visible(remark or ""), style="dim"),
        )
    hidden_hosts = hosts[len(visible_hosts) :]
    if hidden_hosts:
        ended_count = sum(host.state == "ended" for host in hidden_hosts)
        text = f"and {len(hidden_hosts)} more, {ended_count} of them ended"
        table.add_row(Text(text, style="dim"))
    return table


class ProblemLines(FleetListener):
    """Listener that prints a line on stderr when a problem begins, and when it ends."""

    def __init__(self) -> None:
        self._states: dict[int, HostState] = {}
        self._is_scheduler_silent = False

    def progress_changed(self, progress: FleetProgress) -> None:
        """Print the problems that began or ended since the last call."""
        if (progress.scheduler_problem is not None) != self._is_scheduler_silent:
            self._is_scheduler_silent = not self._is_scheduler_silent
            say(
                f"the scheduler gives no answer, trying again: {progress.scheduler_problem}"
                if self._is_scheduler_silent
                else "the scheduler answers again"
            )
        for index, host in enumerate(progress.hosts):
            previous_state, self._states[index] = self._states.get(index), host.state
            if previous_state == host.state:
                continue
            if host.state in PROBLEM_STATES:
                say(f"{host.host}: {host.state}: {host.problem}", host.hint)
            elif previous_state == "no answer":
                say(f"{host.host} answers again")
