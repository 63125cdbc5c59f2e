"""``--cluster`` on workers over TCP and on this host alone, stopped and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from equipoise.cluster.coordinator import FleetProgress, HostProgress, HostState
from equipoise.cluster.folders import CampaignFolder
from equipoise.cluster.messages import Status
from equipoise.kinds.fleet.command import ProblemLines, table_of_hosts
from equipoise.ledger import open_for_reading
from equipoise.model.errors import UnusableInput
from equipoise.model.record import RunRecord
from packages.equipoise.tests.cli.conftest import ENTRY, Equipoise, result_of
from packages.equipoise.tests.cluster.hosts import until
from packages.equipoise.tests.clusters import local_cluster

BLOCKS = 6
LIMITS = ("--blocks", str(BLOCKS), "--min-seconds", "0", "--warmup", "0", "--allow-concurrent")


@dataclass(frozen=True)
class Site:
    """A cluster of two workers, which are one host."""

    address: str
    folder: Path

    @property
    def gate(self) -> Path:
        """File that keeps trials running as long as it exists."""
        return self.folder / "closed"

    def commands(self) -> tuple[str, str]:
        """Two commands that wait for the gate."""
        wait = f"while [ -e {self.gate} ]; do sleep 0.02; done"
        return f"sh -c '{wait}'", f"sh -c '{wait}; true'"

    def record(self, identity: str) -> RunRecord:
        """Return the record of a run in the host's own ledger."""
        return member_in(self.folder / "host.db", identity)


def member_in(ledger: Path, identity: str) -> RunRecord:
    """A run in a ledger, by its identity."""
    with open_for_reading(ledger) as opened:
        run = opened.id_of(identity)
        assert run is not None
        return opened.read_run(run)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two workers over TCP, with a folder and a ledger of their own."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("EQUIPOISE_LEDGER", str(folder / "host.db"))
        with local_cluster(2, folder / "dask") as address:
            patch.undo()
            yield Site(address, folder)
    fleets = Path(os.environ["XDG_STATE_HOME"], "equipoise", "fleets")
    for path in fleets.glob("*"):
        campaign = CampaignFolder(path)
        campaign.halt()
        until(lambda campaign=campaign: None if campaign.is_alive() else True)  # type: ignore[misc]


@pytest.fixture
def coordinator(tmp_path: Path, site: Site) -> Iterator[subprocess.Popen[str]]:
    """A coordinator in a process of its own, whose host has begun a trial that does not end."""
    site.gate.touch()
    line = [*ENTRY, "compare", *site.commands(), "--cluster", site.address, *LIMITS]
    process = subprocess.Popen(
        line, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until(lambda: members_in(tmp_path) or None)
        yield process
    finally:
        site.gate.unlink(missing_ok=True)
        process.kill()
        process.communicate()


def members_in(folder: Path) -> tuple[RunRecord, ...]:
    """The hosts' campaigns in the coordinator's ledger, once one has begun a block."""
    try:
        with open_for_reading(folder / ".equipoise/ledger.db") as ledger:
            members = ledger.read_run().members
    except UnusableInput:
        # There is no ledger yet, or no run in it.
        return ()
    return tuple(member for member in members if member.draws)


def are_equal(copy: RunRecord, other: RunRecord) -> bool:
    """Return whether two copies of a run are equal."""
    return (copy.draws, copy.trials, copy.segments) == (other.draws, other.trials, other.segments)


def test_compare_on_a_cluster_shows_what_its_hosts_measured(
    equipoise: Equipoise, site: Site, tmp_path: Path
) -> None:
    answer = equipoise(
        *("compare", "true", "sleep 0.002", "--cluster", site.address, *LIMITS, "--json", "-")
    )
    assert answer.err == ""
    result = result_of(answer)
    # Both workers are one host.
    (host,) = result["fleet"]["hosts"]
    assert (host["state"], host["blocks"]) == ("ended", BLOCKS)
    (member,) = members_in(tmp_path)
    assert are_equal(member, site.record(member.identity))
    assert member.plan.measure.working_folder == str(site.folder)
    again = equipoise("show", "last", "--json", "-")
    assert again.out == answer.out
    refused = equipoise("resume", member.id)
    assert refused.status == 2
    assert "is one host's part of a campaign on several hosts" in refused.err


def test_workers_on_this_host_are_campaigns_side_by_side(equipoise: Equipoise) -> None:
    answer = equipoise(
        *("os", "--only", "null_call", "--quick", "--cluster", "local:2", "--blocks", "2"),
        *("--allow-concurrent", "--quiet", "--json", "result.json"),
    )
    assert (answer.status, answer.out, answer.err) == (0, "", "")
    fleet = json.loads((equipoise.folder / "result.json").read_text())["fleet"]
    assert fleet["is_one_host"]
    assert [host["blocks"] for host in fleet["hosts"]] == [2, 2]
    assert fleet["cluster"] == "local:2"


def test_a_killed_coordinator_leaves_its_host_measuring_and_resume_fetches_the_rest(
    equipoise: Equipoise, site: Site, tmp_path: Path, coordinator: subprocess.Popen[str]
) -> None:
    coordinator.kill()
    coordinator.wait()
    site.gate.unlink()
    result = result_of(equipoise("resume", "last", "--json", "-"))
    assert result["run"]["blocks"] == BLOCKS
    (member,) = members_in(tmp_path)
    assert are_equal(member, site.record(member.identity))
    # It was not interrupted.
    assert [segment.stopped_because for segment in member.segments] == ["block limit"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_the_host_and_resume_continues_it(
    equipoise: Equipoise, site: Site, coordinator: subprocess.Popen[str], number: signal.Signals
) -> None:
    coordinator.send_signal(number)
    out, err = coordinator.communicate()
    assert (coordinator.returncode, out) == (130, "")
    with open_for_reading(equipoise.folder / ".equipoise/ledger.db") as ledger:
        record = ledger.read_run()
    assert record.segments[-1].stopped_because == "interrupted"
    assert err.strip().splitlines() == [
        "equipoise: interrupted; hosts that answer stop, and nothing measured is lost",
        f"  hint: equipoise resume {record.id}",
    ]
    identity = record.members[0].identity
    until(lambda: site.record(identity).segments[-1].stopped_because)
    site.gate.unlink()
    assert equipoise("resume", record.id, "--quiet").status == 0
    (member,) = members_in(equipoise.folder)
    assert [segment.stopped_because for segment in member.segments] == [
        "interrupted",
        "block limit",
    ]
    assert are_equal(member, site.record(identity))


CLUSTER = ("--cluster", "tcp://127.0.0.1:1")
TWO = ("compare", "true", "false")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((*TWO, *CLUSTER, "--why"), "--why cannot be combined with --cluster"),
        ((*TWO, *CLUSTER, "--layouts", "3"), "--layouts cannot be combined with --cluster"),
        ((*TWO, *CLUSTER, "--adjust"), "--adjust cannot be combined with --cluster"),
        ((*TWO, *CLUSTER, "--export-json", "x"), "--export-json cannot be combined with --cluster"),
        (
            (*TWO, *CLUSTER, "--output", "inherit"),
            "--output inherit cannot be combined with --cluster",
        ),
        ((*TWO, *CLUSTER), "the scheduler at tcp://127.0.0.1:1 cannot be reached"),
        ((*TWO, "--cluster", "tcp://192.0.2.1:8786"), "is unprotected"),
        ((*TWO, "--cluster", "somewhere"), "is not the address of a scheduler"),
        ((*TWO, "--ship"), "--ship is given without --cluster"),
        ((*TWO, "--host-timeout", "9"), "--host-timeout is given without --cluster"),
        ((*TWO, "--tls-key", "x"), "TLS files are given without --cluster"),
        (("run", "allocators", *CLUSTER, "--why"), "--why cannot be combined with --cluster"),
    ],
)
def test_options_without_a_cluster_are_named_before_anything_is_measured(
    equipoise: Equipoise, arguments: tuple[str, ...], what: str
) -> None:
    answer = equipoise(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert what in answer.err
    assert len(answer.err.splitlines()) == 2


def line(host: str, state: HostState, *, problem: str | None = None, **answer: Any) -> HostProgress:
    """A line of the table, after an answer with these fields."""
    return HostProgress(host, state, Status("running", **answer), problem)


def test_the_table_has_a_line_for_each_host_with_its_problem() -> None:
    lines = (
        line("ada", "measuring", blocks=12, running_s=30.0),
        line("bob", "no answer", problem="none of its workers is connected"),
        line("[red]cyd", "ended", blocks=40, stopped_because="verdict"),
    )
    text = printed(FleetProgress("run", lines, "connection refused"), rows=20)
    assert text[1].split() == ["ada", "measuring", "12", "30.0", "s"]
    assert text[2].endswith("none of its workers is connected")
    assert text[3].startswith("[red]cyd")
    assert text[3].endswith("verdict")
    assert text[4] == "the scheduler gives no answer, trying again: connection refused"


def test_a_low_screen_shows_the_hosts_in_trouble() -> None:
    lines = [line(f"host{number}", "ended") for number in range(50)]
    lines[40] = line("host40", "failed", problem="the disk is full")
    text = printed(FleetProgress("run", tuple(lines)), rows=4)
    assert "the disk is full" in text[1]
    assert text[-1] == "and 47 more, 47 of them ended"
    assert len(text) == 5


def printed(progress: FleetProgress, rows: int) -> list[str]:
    """The lines of the table."""
    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        console.print(table_of_hosts(progress, rows))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_pipe_gets_each_problem_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProblemLines()
    for state, scheduler_problem in (
        *(("measuring", None), ("no answer", "refused"), ("no answer", "refused")),
        *(("measuring", None), ("ended", None)),
    ):
        host = line("ada", state, problem="no worker" if state == "no answer" else None)  # type: ignore[arg-type]
        lines.progress_changed(FleetProgress("run", (host,), scheduler_problem))
    assert capsys.readouterr().err.splitlines() == [
        "equipoise: the scheduler gives no answer, trying again: refused",
        "equipoise: ada: no answer: no worker",
        "equipoise: the scheduler answers again",
        "equipoise: ada answers again",
    ]
