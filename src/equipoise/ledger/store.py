"""The ledger itself: `Ledger` records runs and reads them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from equipoise.ledger import rows
from equipoise.ledger.faults import damaged, sqlite_errors_explained
from equipoise.ledger.rows import (
    digest_of_commands,
    digest_of_text,
    from_text,
    read_as,
    recorded_run,
    to_text,
)
from equipoise.ledger.run_reference import LAST, find_id, find_run, new_run_id
from equipoise.ledger.untrusted import bounded
from equipoise.model.bulk import paused_garbage_collector
from equipoise.model.errors import UnusableInput
from equipoise.model.host import Certificate
from equipoise.model.plan import HISTORY_STUDY, Plan
from equipoise.model.record import CampaignWarning, Draw, Observation, RunRecord, RunSummary, Trial
from equipoise.model.safe_text import as_unicode

FIRST_SEGMENT = 1
"""The number of the segment that `Ledger.begin_run` opens."""

IMPORTED = "imported"
"""Why the only segment of an imported run ended."""

_NAMES = msgspec.json.Decoder(tuple[str, ...])
_INSERT_SITTING_END = (
    "INSERT INTO sitting_end (run, sitting, ended_at, stopped_because) VALUES (?, ?, ?, ?)"
)
_SELECT_SUMMARIES = """
    SELECT id, study, names, started_at,
        (SELECT count(*) FROM trial WHERE trial.run = run.number),
        (SELECT stopped_because
            FROM sitting LEFT JOIN sitting_end
                ON sitting_end.run = sitting.run AND sitting_end.sitting = sitting.number
            WHERE sitting.run = run.number ORDER BY sitting.number DESC LIMIT 1)
    FROM run
"""


class Ledger(AbstractContextManager["Ledger"]):
    """An open ledger; a context manager that closes it.

    Made by `equipoise.ledger.open_for_writing` and `equipoise.ledger.open_for_reading`.
    What is recorded is committed when the call returns, and nothing recorded is ever
    changed. Every method raises `UnusableInput` for a full, failing, read-only, locked or
    damaged file.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._numbers: dict[str, int] = {}
        self._identity = _identity(path)
        self.path = path
        """The file, absolute."""

    def __exit__(self, *error: object) -> None:
        """Close the ledger."""
        self.close()

    def close(self) -> None:
        """Close the file; the last one to close it folds the log into it."""
        with sqlite_errors_explained(self.path):
            self._connection.close()

    def begin_run(self, plan: Plan, environment: dict[str, Any], started_at: float) -> str:
        """Record a plan and open its first segment, whose number is `FIRST_SEGMENT`.

        Returns
        -------
        str
            The run's id, such as ``20261120-113005-4f2a``.
        """
        with self._writing():
            identifier, number = self._insert_run(plan, environment, started_at)
        self._numbers[identifier] = number
        return identifier

    def record_import(
        self,
        plan: Plan,
        environment: dict[str, Any],
        draws: Sequence[Draw],
        trials: Sequence[Trial],
        notices: Sequence[CampaignWarning],
        imported_at: float,
    ) -> str:
        """Record a run that another tool measured: all of it or nothing.

        Returns
        -------
        str
            The run's id.
        """
        with self._writing():
            identifier, run = self._insert_run(plan, environment, imported_at)
            self._connection.executemany(
                rows.INSERT_DRAW, (rows.draw_row(run, draw) for draw in draws)
            )
            for trial in trials:
                self._insert_trial(run, trial)
            for notice in notices:
                self._insert_notice(run, notice)
            self._connection.execute(
                _INSERT_SITTING_END, (run, FIRST_SEGMENT, float(imported_at), IMPORTED)
            )
        self._numbers[identifier] = run
        return identifier

    def begin_segment(self, run_id: str, environment: dict[str, Any], started_at: float) -> int:
        """Record that a run is resumed; return the number of the new segment."""
        run = self._number_of(run_id)
        with self._writing():
            latest: int = self._connection.execute(
                "SELECT max(number) FROM sitting WHERE run = ?", (run,)
            ).fetchone()[0]
            self._insert_segment(run, latest + 1, environment, started_at)
        return latest + 1

    def end_segment(self, run_id: str, segment: int, ended_at: float, stopped_because: str) -> None:
        """Record that a segment ended, and why; a segment ends once."""
        self._record(
            _INSERT_SITTING_END,
            (self._number_of(run_id), segment, float(ended_at), as_unicode(stopped_because)),
        )

    def key_of(self, run_id: str) -> str:
        """Return a name of a run that no run of another ledger on this host has."""
        return digest_of_text(f"{self._identity} {run_id}").hex()

    def record_draw(self, run_id: str, draw: Draw) -> None:
        """Record the order of a block, before its first trial starts; once for each block.

        Raises
        ------
        UnusableInput
            Another process drew the block, on a host that cannot see this process.
        """
        row = rows.draw_row(self._number_of(run_id), draw)
        with self._writing():
            try:
                self._connection.execute(rows.INSERT_DRAW, row)
            except sqlite3.IntegrityError as error:
                raise UnusableInput(
                    f"run {run_id} in {self.path} refuses a second draw of its {draw.phase} block "
                    f"{draw.block}: another process goes on with it",
                    hint="let one `equipoise resume` at a time go on with a run",
                ) from error

    def record_trial(self, run_id: str, trial: Trial) -> None:
        """Record a finished trial with its samples; its block's draw has to be here."""
        run = self._number_of(run_id)
        with self._writing():
            self._insert_trial(run, trial)

    def record_notice(self, run_id: str, notice: CampaignWarning) -> None:
        """Record a warning."""
        run = self._number_of(run_id)
        with self._writing():
            self._insert_notice(run, notice)

    def record_observation(self, run_id: str, observation: Observation) -> None:
        """Record what an instrumented run of a condition showed."""
        self._record(
            rows.INSERT_OBSERVATION, rows.observation_row(self._number_of(run_id), observation)
        )

    def record_certificate(self, certificate: Certificate) -> None:
        """Record what certifies a host."""
        self._record(
            "INSERT INTO certificate (kernel, cpu_model, document) VALUES (?, ?, ?)",
            (certificate.kernel, certificate.cpu_model, to_text(certificate)),
        )

    def latest_certificate(self, kernel: str | None, cpu_model: str | None) -> Certificate | None:
        """Return the latest certificate of a host with this kernel and CPU, or ``None``."""
        with self._reading():
            row = self._connection.execute(
                "SELECT document FROM certificate WHERE kernel IS ? AND cpu_model IS ? "
                "ORDER BY number DESC LIMIT 1",
                (kernel, cpu_model),
            ).fetchone()
        return None if row is None else msgspec.convert(from_text(row[0]), Certificate)

    def read_run(self, reference: str = LAST) -> RunRecord:
        """Read a campaign whole, as it stood at one moment even while it goes on.

        That of a history comes with the earlier campaigns of its series.

        Parameters
        ----------
        reference
            A run's id, the beginning of one that fits no other, or ``last``.

        Raises
        ------
        UnusableInput
            If no run or several fit; it says which there are. Or the ledger lacks an earlier
            campaign of the series.
        """
        with self._reading(), paused_garbage_collector():
            run = find_run(self._connection, self.path, reference)
            record = recorded_run(self._connection, self.path, run)
            series = record.plan.history
            if series is None:
                return record
            return replace(record, earlier=tuple(self._of_series(series.earlier)))

    def read_campaigns(self, run_ids: Sequence[str]) -> tuple[RunRecord, ...]:
        """Read campaigns of a history, each without the earlier ones of its series.

        Raises
        ------
        UnusableInput
            The ledger lacks one.
        """
        with self._reading(), paused_garbage_collector():
            return tuple(self._of_series(run_ids))

    def _of_series(self, run_ids: Sequence[str]) -> Iterator[RunRecord]:
        for run_id in run_ids:
            try:
                run = find_id(self._connection, self.path, run_id)
            except UnusableInput as missing:
                raise UnusableInput(
                    f"{self.path} lacks campaign {run_id} of a history that goes on from it",
                    hint="name the ledger that has it: --ledger FILE",
                ) from missing
            yield recorded_run(self._connection, self.path, run)

    def runs(self) -> list[RunSummary]:
        """Return every campaign in a line, in the order in which they began, the newest last."""
        return self._summaries("ORDER BY number", ())

    def same_commands(self, plan: Plan) -> list[RunSummary]:
        """Return the campaigns of the same commands in the same environments, the newest last."""
        return self._summaries(
            "WHERE commands_digest = ? ORDER BY number", (digest_of_commands(plan),)
        )

    def explaining(self, run_id: str) -> tuple[str, ...]:
        """Return the campaigns whose plan says that they explain this one, the newest first."""
        # Quotes inside of a text are escaped there: this stands nowhere else.
        begins = f'"explains":{{"run":{to_text(run_id)},'
        with self._reading():
            cursor = self._connection.execute(
                "SELECT id FROM run WHERE instr(plan, ?) ORDER BY number DESC", (begins,)
            )
            return tuple(identifier for (identifier,) in cursor)

    def over_layouts(self) -> tuple[str, ...]:
        """Return the campaigns over memory layouts, the newest first."""
        with self._reading():
            cursor = self._connection.execute(
                "SELECT id FROM run WHERE instr(plan, ?) ORDER BY number DESC", ('"layouts":[{',)
            )
            return tuple(identifier for (identifier,) in cursor)

    def of_series(self, series: str) -> tuple[str, ...]:
        """Return the campaigns of a history, in the order in which they began."""
        member = f'"series":{to_text(series)}'
        with self._reading():
            cursor = self._connection.execute(
                "SELECT id FROM run WHERE study = ? AND instr(plan, ?) ORDER BY number",
                (HISTORY_STUDY, member),
            )
            return tuple(identifier for (identifier,) in cursor)

    def _summaries(self, which: str, parameters: tuple[Any, ...]) -> list[RunSummary]:
        with self._reading():
            cursor = self._connection.execute(f"{_SELECT_SUMMARIES} {which}", parameters)
            return [
                RunSummary(identifier, study, read_as(names, _NAMES), *rest)
                for identifier, study, names, *rest in cursor
            ]

    def _insert_run(
        self, plan: Plan, environment: dict[str, Any], started_at: float
    ) -> tuple[str, int]:
        """Insert a run and its first segment; return the run's id and number."""
        identifier = self._unused_id(started_at)
        number = self._connection.execute(
            "INSERT INTO run (id, study, names, commands_digest, plan, started_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                identifier,
                as_unicode(plan.study),
                to_text([condition.name for condition in plan.conditions]),
                digest_of_commands(plan),
                to_text(plan),
                float(started_at),
            ),
        ).lastrowid
        assert number is not None
        self._insert_segment(number, FIRST_SEGMENT, environment, started_at)
        return identifier, number

    def _insert_trial(self, run: int, trial: Trial) -> None:
        number = self._connection.execute(rows.INSERT_TRIAL, rows.trial_row(run, trial)).lastrowid
        assert number is not None
        if trial.samples:
            self._connection.executemany(
                rows.INSERT_SAMPLE, rows.sample_rows(number, trial.samples)
            )

    def _insert_notice(self, run: int, notice: CampaignWarning) -> None:
        texts = (as_unicode(text) for text in (notice.code, notice.summary, notice.hint))
        self._connection.execute(
            "INSERT INTO notice (run, code, words, mend) VALUES (?, ?, ?, ?)", (run, *texts)
        )

    def _insert_segment(
        self, run: int, number: int, environment: dict[str, Any], started_at: float
    ) -> None:
        document = to_text(environment)
        digest = digest_of_text(document)
        self._connection.execute(
            "INSERT INTO environment (digest, document) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (digest, document),
        )
        self._connection.execute(
            "INSERT INTO sitting (run, number, environment, started_at) VALUES (?, ?, ?, ?)",
            (run, number, digest, float(started_at)),
        )

    def _unused_id(self, started_at: float) -> str:
        while True:
            identifier = new_run_id(started_at)
            same = self._connection.execute("SELECT 1 FROM run WHERE id = ?", (identifier,))
            if same.fetchone() is None:
                return identifier

    def _number_of(self, run_id: str) -> int:
        if run_id not in self._numbers:
            with self._reading():
                self._numbers[run_id] = find_id(self._connection, self.path, run_id)
        return self._numbers[run_id]

    def _refuse_if_moved(self) -> None:
        """Detect that the file was removed or replaced: SQLite would write on into nowhere."""
        if not self.path.exists() or _identity(self.path) != self._identity:
            raise UnusableInput(
                f"the ledger {self.path} was removed or replaced while it was in use",
                hint="leave the file where it is while a campaign runs, and start it again",
            )

    def _record(self, statement: str, row: tuple[Any, ...]) -> None:
        with self._writing():
            self._connection.execute(statement, row)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: committed when the block ends, undone if it raises."""
        with sqlite_errors_explained(self.path):
            self._refuse_if_moved()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite has undone it by itself where the disk is full.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """One snapshot: what another process writes meanwhile is not half seen."""
        with sqlite_errors_explained(self.path), bounded(self._connection, self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            except UnusableInput:
                raise
            except RecursionError as error:
                raise damaged(self.path, "a row is nested too deeply") from error
            except (ValueError, TypeError) as error:
                raise damaged(self.path, f"a row cannot be read ({error})") from error
            finally:
                # SQLite has ended it by itself where the file turned out damaged.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")


def _identity(path: Path) -> tuple[int, int]:
    present = os.stat(path)
    return present.st_dev, present.st_ino
