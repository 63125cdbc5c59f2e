"""Which campaign says what a gap comes from, and what the explained run shows of it."""

from __future__ import annotations

import msgspec.structs
import numpy as np
import pytest

from equipoise.model.plan import Contrast, Stopping
from equipoise.model.record import RunRecord
from equipoise.why.explanation import latest_experiment, result_of
from equipoise.why.gap import explains_gap
from tests.kinds.explain.simulated import NOISES, Truth, campaign, plan_and_seconds
from tests.schema import validated


def experiment(name: str, *, blocks: int = 30) -> RunRecord:
    """A campaign that confirms its only cause."""
    plan, seconds = plan_and_seconds(2.4, [Truth(1.0)], stopping=Stopping(blocks=blocks), seed=2)
    made = campaign(plan, seconds, NOISES["normal"], np.random.default_rng(3))
    return msgspec.structs.replace(made, id=name)


def explained() -> RunRecord:
    """The same two conditions, compared before."""
    made = experiment("explained")
    plan = msgspec.structs.replace(made.plan, terms=None, study="compare")
    return msgspec.structs.replace(made, plan=plan)


class Shelf:
    """Campaigns that explain any other, the newest first."""

    def __init__(self, *records: RunRecord) -> None:
        self._records = {one.id: one for one in records}

    def explaining(self, run_id: str) -> tuple[str, ...]:
        return tuple(self._records)

    def read_run(self, reference: str) -> RunRecord:
        return self._records[reference]


def test_the_latest_with_a_complete_block_counts() -> None:
    begun = msgspec.structs.replace(experiment("begun"), trials=())
    newer, older = experiment("newer"), experiment("older")
    latest = latest_experiment(explained(), Shelf(begun, newer, older))
    assert latest is newer
    assert latest_experiment(explained(), Shelf()) is None


def test_a_campaign_of_another_pair_does_not_count_for_this_one() -> None:
    made = explained()
    assert explains_gap(experiment("x"), made, Contrast(0, 1))
    assert not explains_gap(experiment("x"), made, Contrast(0, 2))
    assert latest_experiment(made, Shelf(experiment("x")), Contrast(0, 2)) is None


def test_the_explained_run_shows_what_was_tested_and_so_does_the_test_itself() -> None:
    made, test = explained(), experiment("test")
    shown = validated(result_of(made, test)).why
    assert [(one.cause, one.status) for one in shown] == [("cause 0", "confirmed")]
    assert shown[0].share_of_gap == pytest.approx(1.0, abs=0.1)
    assert validated(result_of(test)).why == shown
    assert validated(result_of(made)).why == ()
