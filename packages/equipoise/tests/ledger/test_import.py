"""A run that another tool measured is recorded completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.kinds.imported.terms import ImportSource
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.record import Draw, RecordedWarning, RunRecord, Segment, Trial
from packages.equipoise.tests.plans import plan_of, trial_of

SOURCE = ImportSource("hyperfine", "hyperfine 2.0.0", ("a.json",), "one after the other")
DRAW = Draw("measured", 1, (0, 0, 1, 1), padding_bytes=0)


def imported_run(
    plan: Plan,
    draws: tuple[Draw, ...] = (),
    trials: tuple[Trial, ...] = (),
    warnings: tuple[RecordedWarning, ...] = (),
) -> RunRecord:
    """Return an imported run that has no name from the ledger yet."""
    return RunRecord("", plan, 1.7e9, (Segment(1.7e9, {"hosts": ["h"]}),), draws, trials, warnings)


def test_an_import_comes_back_as_it_was_recorded(tmp_path: Path) -> None:
    plan = replace(plan_of("a", "b"), study="import", terms=SOURCE)
    trials = tuple(trial_of(DRAW, place, 0.5 + place) for place in range(4))
    warning = RecordedWarning("import", "words", "hint")
    with open_for_writing(tmp_path / "ledger.db", durable=False) as ledger:
        run = ledger.record_import(imported_run(plan, (DRAW,), trials, (warning,)))
    with open_for_reading(tmp_path / "ledger.db") as ledger:
        record = ledger.read_run(run)
        (summary,) = ledger.runs()
    assert (record.plan, record.draws, record.trials) == (plan, (DRAW,), trials)
    assert record.warnings == (warning,)
    (segment,) = record.segments
    assert (segment.environment, segment.ended_at) == ({"hosts": ["h"]}, 1.7e9)
    assert (summary.trials, summary.stopped_because) == (4, "imported")


def test_an_import_is_not_a_campaign_of_the_same_commands(tmp_path: Path) -> None:
    own = plan_of("a", "b")
    imported = replace(own, terms=SOURCE)
    with open_for_writing(tmp_path / "ledger.db", durable=False) as ledger:
        campaign = ledger.begin_run(own, {}, 1.7e9)
        run = ledger.record_import(imported_run(imported))
        assert [run.id for run in ledger.runs_with_same_commands(own)] == [campaign]
        assert [run.id for run in ledger.runs_with_same_commands(imported)] == [run]


def test_an_import_that_fails_in_the_middle_records_nothing(tmp_path: Path) -> None:
    trial = replace(trial_of(DRAW, 0, 0.5), block=2)
    with open_for_writing(tmp_path / "ledger.db", durable=False) as ledger:
        with pytest.raises(UnusableInput, match="does not accept a new row"):
            ledger.record_import(imported_run(plan_of("a", "b"), (DRAW,), (trial,)))
        assert ledger.runs() == []
