"""Plans and trials that tests of several rooms share."""

from __future__ import annotations

from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, Trial


def plan_of(
    *names: str,
    stopping: Stopping | None = None,
    measure: Measure | None = None,
    judgement: Judgement | None = None,
    seed: int = 1,
) -> Plan:
    """A plan over commands that nobody runs."""
    return Plan(
        study="compare",
        conditions=tuple(
            Condition(name=name, command=(f"/bin/{name}",)) for name in names or ("a", "b")
        ),
        measure=measure or Measure(working_folder="/"),
        stopping=stopping or Stopping(min_seconds=0.0),
        judgement=judgement or Judgement(),
        seed=seed,
    )


def trial_of(
    draw: Draw,
    place: int,
    wall_s: float,
    *,
    failure: str | None = None,
    timed_out: bool = False,
    position: int | None = None,
    washout: bool = False,
) -> Trial:
    """A finished trial that took ``wall_s`` seconds."""
    return Trial(
        phase=draw.phase,
        block=draw.block,
        position=place if position is None else position,
        condition=draw.order[place],
        started_at=1.7e9,
        accounting=Accounting(wall_s=wall_s, user_s=wall_s, sys_s=0.0, max_rss_bytes=1_000_000),
        exit=None if timed_out else (1 if failure else 0),
        failure=failure,
        failure_kind="timed out" if timed_out else "failed" if failure else None,
        washout=washout,
        error_tail="no such frobnicator\n" if failure else "",
    )
