"""The class `Ledger`, which records and reads runs. A run is the record of a campaign."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from equipoise.files.state import this_host
from equipoise.ledger.file import LedgerFile
from equipoise.ledger.parts import (
    Head,
    add_part,
    append_draws,
    append_events,
    append_observations,
    append_trials,
    append_warnings,
    cursor_bytes,
    insert_certificate,
    insert_head,
    part_from,
    run_of,
    slice_of,
)
from equipoise.ledger.rows import (
    Row,
    TrialRows,
    digest_of_commands,
    digest_of_text,
    draw_row,
    from_text,
    observation_row,
    plan_from_text,
    read_as,
    recorded_run,
    to_text,
    trial_rows,
    warning_row,
)
from equipoise.ledger.run_reference import (
    LAST,
    ORDER,
    find_mentioned_run,
    find_run,
    find_run_by_name,
    name_of,
    names_of,
    new_run_id,
)
from equipoise.ledger.schema import IDENTITY_BYTES
from equipoise.ledger.versions import RunVersion, mentions_of, versions_of
from equipoise.model.errors import UnusableInput
from equipoise.model.garbage_collection import paused_garbage_collector
from equipoise.model.host import Certificate, HostReference
from equipoise.model.plan import Plan, member_identity
from equipoise.model.record import (
    CampaignWarning,
    Draw,
    Observation,
    RunRecord,
    RunSummary,
    Trial,
)
from equipoise.shared.safe_text import as_unicode, shortened
from equipoise.shared.spelling import option

FIRST_SEGMENT = 1
"""Number of the segment that `Ledger.begin_run` opens."""

_names_decoder = msgspec.json.Decoder(tuple[str, ...])
_SELECT_SUMMARIES = """
    SELECT run.number, study, names, started_at,
        (SELECT stopped_because
            FROM segment LEFT JOIN segment_end
                ON segment_end.run = segment.run AND segment_end.segment = segment.number
            WHERE segment.run = run.number ORDER BY segment.number DESC LIMIT 1),
        (SELECT name FROM host WHERE host.number = run.host)
    FROM run
"""
_SELECT_RUN_OF_HOST = """
    SELECT run.number FROM run JOIN host ON host.number = run.host
    WHERE run.identity = ? AND lower(hex(host.identity)) = ? AND lower(hex(part_of)) = ?
        AND host_index = ?
"""
_SELECT_FLEETS = """
    SELECT number, lower(hex(identity)), plan FROM run WHERE identity IN (SELECT part_of FROM run)
"""


class Ledger(LedgerFile):
    """An open ledger; a context manager that closes it.

    Use `equipoise.ledger.open_for_writing` or `equipoise.ledger.open_for_reading`. A record is
    committed when the method returns, and never changed later. Every method raises `UnusableInput`
    for a full, failing, read-only, locked or damaged file.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, host_name: str | None = None
    ) -> None:
        super().__init__(connection, path)
        self._host_name = host_name
        self._run_numbers: dict[str, int] = {}
        """Number of each run in this ledger, by the run's name."""

    def begin_run(
        self,
        plan: Plan,
        environment: dict[str, Any],
        started_at: float,
        *,
        identity: bytes | None = None,
    ) -> str:
        """Record a plan and open its first segment; return the run's id.

        The segment's number is `FIRST_SEGMENT`. The identity has 16 bytes; by default they are
        random. If the ledger has a run with this identity and plan, nothing is recorded.

        Raise `UnusableInput` if the ledger has a run with this identity and another plan.
        """
        host = this_host(self._host_name)
        with self.writing():
            number = None if identity is None else self._run_with_identity(identity, plan)
            if number is None:
                number = self._insert_run(plan, environment, started_at, host, identity)
            name = name_of(self.connection, number)
        self._run_numbers[name] = number
        return name

    def identity_of(self, run_id: str) -> str:
        """Return the identity of a run, 32 hexadecimal digits; errors as in `read_run`."""
        run = self._number_of(run_id)
        with self.reading():
            statement = "SELECT identity FROM run WHERE number = ?"
            identity: bytes = self.connection.execute(statement, (run,)).fetchone()[0]
        return identity.hex()

    def id_of(self, identity: str) -> str | None:
        """Return the id of the run with an identity; ``None`` if this ledger lacks the run."""
        with self.reading():
            run = run_of(self.connection, bytes.fromhex(identity))
            return None if run is None else name_of(self.connection, run)

    def slice(self, identity: str, after: bytes = b"", *, max_trials: int) -> tuple[bytes, bool]:
        """Return a slice, which is a part of a run as bytes, and whether the run has more rows.

        ``after`` is the `cursor` of the other ledger's copy. The slice has at most ``max_trials``
        trials, and at most ``max_trials`` blocks. The slice is ``b""`` if nothing is new.

        Raise `UnusableInput` if the ledger lacks the run, or ``after`` is not a cursor.
        """
        with self.reading():
            run = run_of(self.connection, bytes.fromhex(identity))
            if run is None:
                raise UnusableInput(
                    f"the ledger {self.path} has no run with the identity {identity}",
                    hint=f"use the ledger that has this run: {option('ledger', 'FILE')}",
                )
            return slice_of(self.connection, run, after, max_trials)

    def append_slice(self, content: bytes, *, check: Callable[[Head], None] | None = None) -> None:
        """Append the rows of a slice that this ledger lacks.

        ``check`` raises an error if the slice is not of the requested run.

        Raise `Fork` if the slice contradicts this ledger's copy of the run. Raise `UnusableInput`
        if ``content`` is not a slice, has rows that no campaign records, or begins after the end of
        the copy.
        """
        part = part_from(content)
        if check is not None:
            check(part.head)
        with self.writing():
            add_part(self.connection, self.path, part)

    def cursor(self, identity: str) -> bytes:
        """Return the end of this ledger's copy of a run for `slice`; ``b""`` without a copy."""
        with self.reading():
            return cursor_bytes(self.connection, bytes.fromhex(identity))

    def record_import(self, record: RunRecord) -> str:
        """Record a complete run that another tool measured; return its id."""
        with self.writing():
            # The host of an imported run is unknown.
            run = self._insert_run(
                record.plan, record.environment, record.started_at, host=None, identity=None
            )
            append_draws(self.connection, run, list(map(draw_row, record.draws)))
            append_trials(self.connection, run, list(map(trial_rows, record.trials)))
            append_warnings(self.connection, run, list(map(warning_row, record.warnings)))
            end_event = (FIRST_SEGMENT, None, float(record.started_at), record.plan.kind.name)
            append_events(self.connection, run, [end_event])
            name = name_of(self.connection, run)
        self._run_numbers[name] = run
        return name

    def begin_segment(self, run_id: str, environment: dict[str, Any], started_at: float) -> int:
        """Record that a run is resumed; return the number of the new segment."""
        run = self._number_of(run_id)
        with self.writing():
            latest_segment: int = self.connection.execute(
                "SELECT max(number) FROM segment WHERE run = ?", (run,)
            ).fetchone()[0]
            begin_event = (latest_segment + 1, to_text(environment), float(started_at), None)
            append_events(self.connection, run, [begin_event])
        return latest_segment + 1

    def end_segment(self, run_id: str, segment: int, ended_at: float, stopped_because: str) -> None:
        """Record the end of a segment, once, with the reason."""
        end_event = (segment, None, float(ended_at), as_unicode(stopped_because))
        self._append(run_id, append_events, end_event)

    def key_of(self, run_id: str) -> str:
        """Return a key of a run that is unique among the ledgers on this host."""
        return digest_of_text(f"{self.file_identity} {run_id}").hex()

    def record_draw(self, run_id: str, draw: Draw) -> None:
        """Record the order of a block, once and before its first trial starts.

        Raise `UnusableInput` if another process, perhaps on another host, drew the block.
        """
        run = self._number_of(run_id)
        with self.writing():
            try:
                append_draws(self.connection, run, [draw_row(draw)])
            except sqlite3.IntegrityError as error:
                raise UnusableInput(
                    f"{draw.phase} block {draw.block} of run {run_id} in {self.path} was already "
                    "drawn: another process continues this run",
                    hint="run only one `equipoise resume` at a time for a run",
                ) from error

    def record_trial(self, run_id: str, trial: Trial) -> None:
        """Record a finished trial with its samples. The draw of the block must be recorded."""
        self._append(run_id, append_trials, trial_rows(trial))

    def record_warning(self, run_id: str, warning: CampaignWarning) -> None:
        """Record a warning."""
        self._append(run_id, append_warnings, warning_row(warning))

    def record_observation(self, run_id: str, observation: Observation) -> None:
        """Record an observation of an instrumented run."""
        self._append(run_id, append_observations, observation_row(observation))

    def record_certificate(self, certificate: Certificate) -> None:
        """Record a certificate of a host; the same certificate again changes nothing."""
        with self.writing():
            insert_certificate(self.connection, certificate, to_text(certificate))

    def latest_certificate(self, kernel: str | None, cpu_model: str | None) -> Certificate | None:
        """Return the latest certificate of a host with this kernel and CPU, or ``None``."""
        with self.reading():
            statement = (
                "SELECT document FROM certificate WHERE kernel IS ? AND cpu_model IS ? "
                "ORDER BY digest"
            )
            certificates = [
                msgspec.convert(from_text(document), Certificate)
                for (document,) in self.connection.execute(statement, (kernel, cpu_model))
            ]
        return max(certificates, key=lambda certificate: certificate.made_at, default=None)

    def read_run(self, reference: str = LAST) -> RunRecord:
        """Read a whole campaign at one moment, even while it runs.

        A campaign of a history includes the earlier campaigns of the series. A campaign of a fleet
        includes the campaigns of hosts that this ledger has. ``reference`` is as in `find_run`.

        Raise `UnusableInput` if no run or several match, or if the ledger lacks an earlier campaign
        of the series.
        """
        with self.reading(), paused_garbage_collector():
            run = find_run(self.connection, self.path, reference)
            return self._read_whole(run, name_of(self.connection, run))

    def read_version(self, version: RunVersion) -> RunRecord:
        """Read a whole campaign that `run_versions` listed, without a search for its name.

        Raise `UnusableInput` if the ledger lacks an earlier campaign of the series.
        """
        with self.reading(), paused_garbage_collector():
            return self._read_whole(version.number, version.name)

    def _read_whole(self, run: int, name: str) -> RunRecord:
        """Return a run with the earlier campaigns of its series, or with the runs of its hosts."""
        record = recorded_run(self.connection, self.path, run, name)
        if record.plan.rules.earlier_ids:
            earlier = tuple(self._read_series(record.plan.rules.earlier_ids, run))
            return replace(record, earlier_runs=earlier)
        if record.plan.rules.has_members:
            members = self._runs_of_hosts(record.identity, record.plan)
            records = (self._record_of(member) for member in members)
            return replace(record, members=tuple(records))
        return record

    def _record_of(self, run: int) -> RunRecord:
        return recorded_run(self.connection, self.path, run, name_of(self.connection, run))

    def read_campaigns(self, run_ids: Sequence[str]) -> tuple[RunRecord, ...]:
        """Read campaigns of a series, each without its earlier campaigns.

        Raise `UnusableInput` if the ledger lacks a campaign.
        """
        with self.reading(), paused_garbage_collector():
            return tuple(self._read_series(run_ids, None))

    def _read_series(self, run_ids: Sequence[str], plan_run: int | None) -> Iterator[RunRecord]:
        """Yield the campaigns with the ids, as the plan of the run ``plan_run`` mentions them."""
        for run_id in run_ids:
            try:
                run = (
                    find_run(self.connection, self.path, run_id)
                    if plan_run is None
                    else find_mentioned_run(self.connection, self.path, run_id, plan_run)
                )
            except UnusableInput as error:
                raise UnusableInput(
                    f"the ledger {self.path} lacks campaign {run_id} of the same series",
                    hint=f"use the ledger that has this campaign: {option('ledger', 'FILE')}",
                ) from error
            yield self._record_of(run)

    def _runs_of_hosts(self, fleet: str, plan: Plan) -> dict[int, HostReference]:
        """Return the hosts of a fleet, by the number of the host's run in this ledger.

        A run belongs to the fleet if its identity and its host match.
        """
        hosts_by_run: dict[int, HostReference] = {}
        for index, host in enumerate(plan.rules.member_hosts):
            identity = bytes.fromhex(member_identity(fleet, index))
            parameters = (identity, host.identity, fleet, index)
            for (run,) in self.connection.execute(_SELECT_RUN_OF_HOST, parameters):
                hosts_by_run[run] = host
        return hosts_by_run

    def run_versions(self) -> list[RunVersion]:
        """Return every run with the number of its rows, in the order of their start."""
        with self.reading():
            return versions_of(self.connection)

    def mentions_of(self, version: RunVersion) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the identities of earlier campaigns in the series, and of other mentioned runs.

        Runs that this ledger lacks are left out.
        """
        with self.reading():
            return mentions_of(self.connection, self.path, version.number)

    def runs(self) -> list[RunSummary]:
        """Return a summary of every campaign, in the order of their start."""
        return self._summaries("", ())

    def runs_with_same_commands(self, plan: Plan) -> list[RunSummary]:
        """Return the campaigns of the same commands and environments, sorted by their start."""
        return self._summaries("WHERE commands_digest = ?", (digest_of_commands(plan),))

    def runs_explaining(self, run_id: str) -> tuple[str, ...]:
        """Return the names of the campaigns that explain this campaign, the newest first."""
        with self.reading():
            run = find_run(self.connection, self.path, run_id)
            (identifier,) = self.connection.execute(
                "SELECT id FROM run WHERE number = ?", (run,)
            ).fetchone()
            # JSON escapes quotes in texts, so the prefix matches only a key. The prefix has no
            # closing quote, so it also matches a longer name with digits of the identity.
            json_prefix = f'"run":{to_text(identifier)[:-1]}'
            return tuple(
                name
                for number, name, plan in reversed(self._runs_whose_plan_contains(json_prefix))
                if self._plan_mentions(plan, number, run)
            )

    def _plan_mentions(self, plan: str, plan_run: int, run: int) -> bool:
        """Return whether the plan of the run ``plan_run`` mentions a run."""
        for mentioned_run in plan_from_text(plan).rules.referenced_runs:
            with suppress(UnusableInput):
                if find_mentioned_run(self.connection, self.path, mentioned_run, plan_run) == run:
                    return True
        return False

    def runs_over_layouts(self) -> tuple[str, ...]:
        """Return the names of the campaigns over memory layouts, the newest first."""
        with self.reading():
            return tuple(
                name for _, name, _ in reversed(self._runs_whose_plan_contains('"layouts":[{'))
            )

    def runs_of_series(self, series: str, study: str) -> tuple[str, ...]:
        """Return the names of the campaigns of a study and series, in the order of their start."""
        with self.reading():
            return tuple(
                name
                for _, name, _ in self._runs_whose_plan_contains(
                    f'"series":{to_text(series)}', study
                )
            )

    def _runs_whose_plan_contains(
        self, text: str, study: str | None = None
    ) -> list[tuple[int, str, str]]:
        """Return number, name and plan of each run with the text in its plan, in order."""
        rows = self.connection.execute(
            "SELECT number, plan FROM run WHERE instr(plan, ?1) AND (?2 IS NULL OR study = ?2) "
            f"ORDER BY {ORDER}",
            (text, study),
        )
        return [(number, name_of(self.connection, number), plan) for number, plan in rows]

    def _summaries(self, where: str, parameters: tuple[Any, ...]) -> list[RunSummary]:
        """Return summaries of the runs that a WHERE clause selects, in the order of their start."""
        with self.reading():
            names = names_of(self.connection)
            hosts_by_fleet: dict[int, dict[int, HostReference]] = {}
            for number, identity, plan in self.connection.execute(_SELECT_FLEETS):
                # A kind of campaign in the ledger may not be installed here.
                with suppress(ValueError):
                    hosts_by_fleet[number] = self._runs_of_hosts(identity, plan_from_text(plan))
            fleet_of_run = {run: fleet for fleet, hosts in hosts_by_fleet.items() for run in hosts}
            statement = f"{_SELECT_SUMMARIES} {where} ORDER BY {ORDER}"
            rows = self.connection.execute(statement, parameters)
            return [
                RunSummary(
                    id=names[run],
                    study=study,
                    commands=tuple(shortened(name) for name in read_as(names_json, _names_decoder)),
                    started_at=started_at,
                    # The run of a fleet has no trials, so the trials of the hosts' runs count.
                    trials=sum(map(self._trial_count, (run, *hosts_by_fleet.get(run, ())))),
                    stopped_because=stop_reason,
                    host=host_name,
                    part_of=names.get(fleet_of_run.get(run, 0)),
                    hosts=len({host.identity for host in hosts_by_fleet.get(run, {}).values()})
                    or None,
                )
                for run, study, names_json, started_at, stop_reason, host_name in rows
            ]

    def _trial_count(self, run: int) -> int:
        rows = self.connection.execute("SELECT count(*) FROM trial WHERE run = ?", (run,))
        return int(rows.fetchone()[0])

    def _run_with_identity(self, identity: bytes, plan: Plan) -> int | None:
        """Return the number of the run with an identity; the run must have this plan."""
        run = run_of(self.connection, identity)
        if run is not None:
            statement = "SELECT plan FROM run WHERE number = ?"
            (recorded_plan,) = self.connection.execute(statement, (run,)).fetchone()
            if recorded_plan != to_text(plan):
                raise UnusableInput(
                    f"run {name_of(self.connection, run)} in {self.path} has the same identity as "
                    "the new run, but another plan",
                    hint="continue the recorded run with `equipoise resume`, or start a new run",
                )
        return run

    def _insert_run(
        self,
        plan: Plan,
        environment: dict[str, Any],
        started_at: float,
        host: HostReference | None,
        identity: bytes | None,
    ) -> int:
        member = plan.membership
        head = Head(
            identity=identity or secrets.token_bytes(IDENTITY_BYTES),
            id=self._unused_id(started_at),
            host=None if host is None else (bytes.fromhex(host.identity), host.name),
            part_of=None if member is None else bytes.fromhex(member.fleet_identity),
            host_index=None if member is None else member.host_index,
            study=as_unicode(plan.study),
            names=to_text([condition.name for condition in plan.conditions]),
            commands_digest=digest_of_commands(plan),
            plan=to_text(plan),
            started_at=float(started_at),
        )
        run = insert_head(self.connection, head)
        begin_event = (FIRST_SEGMENT, to_text(environment), head.started_at, None)
        append_events(self.connection, run, [begin_event])
        return run

    def _unused_id(self, started_at: float) -> str:
        while True:
            identifier = new_run_id(started_at)
            rows = self.connection.execute("SELECT 1 FROM run WHERE id = ?", (identifier,))
            if rows.fetchone() is None:
                return identifier

    def _number_of(self, run_id: str) -> int:
        if run_id not in self._run_numbers:
            with self.reading():
                self._run_numbers[run_id] = find_run_by_name(self.connection, self.path, run_id)
        return self._run_numbers[run_id]

    def _append(self, run_id: str, append: Callable[..., None], row: Row | TrialRows) -> None:
        run = self._number_of(run_id)
        with self.writing():
            append(self.connection, run, [row])
