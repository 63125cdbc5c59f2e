"""Progress of a fleet on stderr: a live table with a line for each host, or what goes wrong."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from equipoise.cli.streams import say
from equipoise.cluster.coordinator import FleetListener, FleetProgress, HostLine, HostState
from equipoise.model.safe_text import visible
from equipoise.report.units import waiting_time

SHORTEST_REDRAW_S = 0.1
LINES_BESIDE_THE_TABLE = 4
TROUBLE: frozenset[HostState] = frozenset({"no answer", "failed", "missing"})
STYLES: dict[HostState, str] = {
    "starting": "dim",
    "waiting": "dim",
    "no answer": "yellow",
    "failed": "red",
    "missing": "red",
}
_STATES_IN_ORDER: tuple[HostState, ...] = (
    *("failed", "missing", "no answer", "measuring", "starting", "waiting", "ended"),
)
"""Order in which hosts are shown where not every one has room."""


def fleet_progress_for(*, quiet: bool, color: bool) -> FleetListener:
    """Return a live table if stderr is a terminal, else lines of what goes wrong, or silence."""
    if quiet:
        return FleetListener()
    if not sys.stderr.isatty():
        return TroubleLines()
    return FleetTable(Console(stderr=True, no_color=not color))


class FleetTable(FleetListener):
    """A live table: every host with its state, its blocks, its time and what is wrong."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._drawn_at = 0.0

    def fleet_started(self, run_id: str, progress: FleetProgress) -> None:
        """Say which run it is, and show the table."""
        hosts = len(progress.lines)
        line = f"campaign {run_id} on {hosts} host{'s' if hosts != 1 else ''}"
        self._console.print(line, style="dim", highlight=False, markup=False)
        self._live.start()
        self._draw(progress)

    def changed(self, progress: FleetProgress) -> None:
        """Show what has become of a host."""
        if time.monotonic() - self._drawn_at >= SHORTEST_REDRAW_S:
            self._draw(progress)

    def fleet_ended(self) -> None:
        """Take the table away: the result has a line for each host."""
        self._live.stop()

    def _draw(self, progress: FleetProgress) -> None:
        rows = self._console.height - LINES_BESIDE_THE_TABLE
        self._live.update(fleet_table(progress, rows), refresh=True)
        self._drawn_at = time.monotonic()


def fleet_table(progress: FleetProgress, rows: int) -> Table:
    """Return the table of a fleet; hosts in trouble first, if there is no room for all.

    Parameters
    ----------
    rows
        Number of rows at most; the last one counts what does not fit.
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
        lines.sort(key=lambda line: _STATES_IN_ORDER.index(line.state))
    fitting = lines if len(lines) <= rows else lines[: max(rows - 1, 0)]
    for line in fitting:
        table.add_row(
            Text(visible(line.host)),
            Text(line.state, style=STYLES.get(line.state, "")),
            Text(str(line.blocks)),
            Text(waiting_time(line.running_s)),
            Text(visible(_remark(line)), style="dim"),
        )
    hidden = lines[len(fitting) :]
    if hidden:
        ended = sum(line.state == "ended" for line in hidden)
        table.add_row(Text(f"and {len(hidden)} more, {ended} of them ended", style="dim"))
    return table


def _remark(line: HostLine) -> str:
    if line.state == "ended":
        return line.stopped_because or ""
    return line.problem or ""


class TroubleLines(FleetListener):
    """Lines that say once what goes wrong with a host, and that it is well again."""

    def __init__(self) -> None:
        self._states: dict[int, HostState] = {}
        self._trouble = False

    def changed(self, progress: FleetProgress) -> None:
        """Say what is new."""
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
