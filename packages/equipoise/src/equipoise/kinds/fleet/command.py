"""A campaign on the hosts of a cluster, on the command line: begin, follow, analyse, show.

While the hosts measure, stderr has a live table with a line for each host; without a terminal it
has only problems.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
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
from equipoise.cluster.coordinator import (
    HOST_TIMEOUT_S,
    FleetListener,
    FleetProgress,
    HostState,
)
from equipoise.cluster.files import portable_builds
from equipoise.cluster.roster import DaskTransport
from equipoise.design.command_line import shell_line
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.fleet import conducting
from equipoise.kinds.fleet.conducting import FleetOptions, OpenTransport
from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.ledger import Ledger, open_for_writing
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.quantities import counted
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.report.units import waiting_time
from equipoise.shared.safe_text import visible

OTHER_LINES = 4
TROUBLE: frozenset[HostState] = frozenset({"no answer", "failed", "missing"})
STYLES: dict[HostState, str] = {
    "failed": "red",
    "missing": "red",
    "no answer": "yellow",
    "measuring": "",
    "starting": "dim",
    "waiting": "dim",
    "ended": "",
}
"""Style of each state. If there are too many hosts, this order decides which are shown."""


def measure_fleet(
    plan: Plan,
    access: ClusterAccess,
    hosts: HostOptions,
    output: OutputOptions,
    *,
    build_lines: Mapping[str, str] | None = None,
    build_folders: Mapping[str, str] | None = None,
    warnings: Sequence[CampaignWarning] = (),
) -> int:
    """Measure a plan on every host of a cluster, and show the result over them.

    Parameters
    ----------
    build_lines, build_folders
        For each level of a study, by its name: the line with which every host builds it, and the
        folder in which this machine built it.
    """
    options = replace(
        _options(access, hosts, output),
        builds=portable_builds(build_lines or {}, plan.measure.working_folder),
        build_folders=tuple((build_folders or {}).values()),
    )
    return _follow(
        lambda *cluster: conducting.start(plan, options, *cluster, warnings=warnings),
        access,
        output,
    )


def resume_fleet(
    record: RunRecord,
    limits: CampaignLimits,
    hosts: HostOptions,
    output: OutputOptions,
) -> int:
    """Resume the campaign of a fleet on its hosts, and show the result over them."""
    terms = record.plan.terms
    assert isinstance(terms, FleetPlan), "only a coordinator's run has a cluster"
    cluster = replace(hosts.cluster, cluster=hosts.cluster.cluster or terms.cluster)
    access = replace(hosts, cluster=cluster).access()
    assert access is not None
    options = _options(access, hosts, output)
    return _follow(
        lambda *cluster: conducting.resume(record, limits, options, *cluster), access, output
    )


def _options(access: ClusterAccess, hosts: HostOptions, output: OutputOptions) -> FleetOptions:
    return FleetOptions(
        cluster=access.address.text,
        campaign_for_each_worker=isinstance(access.address, LocalWorkers),
        ship=hosts.ship,
        allow_concurrent=output.allow_concurrent,
        durable=output.durable,
        host_timeout_s=hosts.host_timeout or HOST_TIMEOUT_S,
    )


def _follow(
    begin: Callable[[OpenTransport, Ledger, FleetListener], Coroutine[Any, Any, FleetProgress]],
    access: ClusterAccess,
    output: OutputOptions,
) -> int:
    """Follow a fleet's campaign to its end, and show it; return the exit status.

    This process measures nothing, so it needs no measurement lock.

    Raise `KeyboardInterrupt` after a message if the user interrupted the campaign.
    """
    with (
        open_for_writing(output.ledger, durable=output.durable, host=output.host) as ledger,
        running_scheduler(access) as address,
    ):
        try:
            listener = _listener(quiet=output.quiet, color=output.color)
            transport = DaskTransport(address, access.tls)
            outcome = conducting.run_to_end(begin(transport, ledger, listener))
            return _show_fleet(outcome, access, ledger, output)
        except Interrupted as interruption:
            say(
                "interrupted; hosts that answer stop, and nothing measured is lost",
                _resume_line(interruption.run_id, access),
            )
            raise KeyboardInterrupt from None


def _show_fleet(
    outcome: FleetProgress, access: ClusterAccess, ledger: Ledger, output: OutputOptions
) -> int:
    """Report the missing hosts, then show the result of the others; return the exit status.

    Raise `ConditionFailed` if the campaign failed on every host. Raise `UnusableInput` if no host
    has delivered a block.
    """
    failed, missing = outcome.failed, outcome.missing
    if len(failed) == len(outcome.lines):
        raise ConditionFailed(
            f"the campaign failed on every host: {failed[0].host}: {failed[0].problem}",
            hint=failed[0].hint,
        )
    for line in failed:
        say(f"the campaign failed on {line.host}: {line.problem}", line.hint)
    resume = _resume_line(outcome.run_id, access)
    if missing:
        names = ", ".join(line.host for line in missing)
        problem = f"{names} did not deliver all blocks: the missing ones are not in this result"
        if all(line.status.blocks == 0 for line in outcome.lines):
            raise UnusableInput(
                f"nothing has arrived from {names}: {missing[0].problem}",
                hint=f"{resume} tries again",
            )
        say(problem, f"{resume} fetches them")
    return show_result(analyse(outcome.run_id, ledger, output), output)


def _resume_line(run_id: str, access: ClusterAccess) -> str:
    """Return the command that resumes a run, with the options that the ledger does not keep."""
    words = ["equipoise", "resume", run_id]
    if access.tls is not None:
        words += ["--tls-ca", str(access.tls.authority), "--tls-cert", str(access.tls.certificate)]
        words += ["--tls-key", str(access.tls.key)]
    if access.insecure:
        words.append("--insecure")
    return shell_line(words)


def _listener(*, quiet: bool, color: bool) -> FleetListener:
    """Return a live table if stderr is a terminal, else lines about problems; nothing if quiet."""
    if quiet:
        return FleetListener()
    if not sys.stderr.isatty():
        return TroubleLines()
    return FleetTable(Console(stderr=True, no_color=not color))


class FleetTable(FleetListener):
    """A live table: the state, the blocks, the time and the problem of each host."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._drawn_at = 0.0

    def fleet_started(self, progress: FleetProgress) -> None:
        """Print the id of the campaign, and show the table."""
        line = f"campaign {progress.run_id} on {counted(len(progress.lines), 'host')}"
        self._console.print(line, style="dim", highlight=False, markup=False)
        self._live.start()
        self._draw(progress)

    def changed(self, progress: FleetProgress) -> None:
        """Show the new state of a host."""
        if time.monotonic() - self._drawn_at >= MIN_REDRAW_S:
            self._draw(progress)

    def fleet_ended(self) -> None:
        """Remove the table; the result has a line for each host."""
        self._live.stop()

    def _draw(self, progress: FleetProgress) -> None:
        rows = self._console.height - OTHER_LINES
        self._live.update(fleet_table(progress, rows), refresh=True)
        self._drawn_at = time.monotonic()


def fleet_table(progress: FleetProgress, rows: int) -> Table:
    """Return the table of a fleet; if there is no room for all, hosts in trouble come first.

    Parameters
    ----------
    rows
        Largest number of rows; the last one may count the hosts that do not fit.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("host", no_wrap=True, overflow="ellipsis", max_width=32)
    table.add_column("state", no_wrap=True)
    for heading in ("blocks", "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="ellipsis", no_wrap=True)
    if progress.trouble is not None:
        table.caption = Text(
            visible(f"the scheduler gives no answer, trying again: {progress.trouble}"), "yellow"
        )
        table.caption_justify = "left"
    lines = list(progress.lines)
    if len(lines) > rows:
        lines.sort(key=lambda line: list(STYLES).index(line.state))
    fitting = lines if len(lines) <= rows else lines[: max(rows - 1, 0)]
    for line in fitting:
        remark = line.status.stopped_because if line.state == "ended" else line.problem
        table.add_row(
            Text(visible(line.host)),
            Text(line.state, style=STYLES[line.state]),
            Text(str(line.status.blocks)),
            Text(waiting_time(line.status.running_s)),
            Text(visible(remark or ""), style="dim"),
        )
    hidden = lines[len(fitting) :]
    if hidden:
        ended_count = sum(line.state == "ended" for line in hidden)
        table.add_row(Text(f"and {len(hidden)} more, {ended_count} of them ended", style="dim"))
    return table


class TroubleLines(FleetListener):
    """Lines on stderr, one when a problem of a host begins and one when it ends."""

    def __init__(self) -> None:
        self._states: dict[int, HostState] = {}
        self._trouble = False

    def changed(self, progress: FleetProgress) -> None:
        """Print new problems and ended ones."""
        if (progress.trouble is not None) != self._trouble:
            self._trouble = not self._trouble
            say(
                f"the scheduler gives no answer, trying again: {progress.trouble}"
                if self._trouble
                else "the scheduler answers again"
            )
        for place, line in enumerate(progress.lines):
            before, self._states[place] = self._states.get(place), line.state
            if before == line.state:
                continue
            if line.state in TROUBLE:
                say(f"{line.host}: {line.state}: {line.problem}", line.hint)
            elif before == "no answer":
                say(f"{line.host} answers again")
