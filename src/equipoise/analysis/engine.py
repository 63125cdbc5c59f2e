"""The engine that judges a campaign: the one it began with, unless another one is asked for."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import FIRST_ENGINE, LATEST_ENGINE
from equipoise.model.record import JUDGED_ANEW, CampaignWarning, RunRecord


def judged_by(record: RunRecord, engine: int) -> RunRecord:
    """Return the record with another engine, and a warning where it is not its own.

    The chance of a wrong verdict is at most alpha for each engine, not for the better of the two.

    Raises
    ------
    UnusableInput
        There is no such engine.
    """
    if not FIRST_ENGINE <= engine <= LATEST_ENGINE:
        raise UnusableInput(
            f"there is no engine {engine}", hint=f"give {FIRST_ENGINE} or {LATEST_ENGINE}"
        )
    judgement = record.plan.judgement
    if judgement.engine == engine:
        return record
    warning = CampaignWarning(
        JUDGED_ANEW,
        f"engine {engine} judges anew a campaign that engine {judgement.engine} judged",
        "choose one of the two verdicts before you look: looking at both spends alpha twice",
    )
    return replace(
        record,
        plan=replace(record.plan, judgement=replace(judgement, engine=engine)),
        notices=(*record.notices, warning),
        earlier=tuple(judged_by(one, engine) for one in record.earlier),
        members=tuple(judged_by(one, engine) for one in record.members),
    )
