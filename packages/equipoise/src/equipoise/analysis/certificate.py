"""Certifies a host: measures its rate of false alarms, and the effects that it can detect.

Some campaigns compare two equal programs. In the injected campaigns, the second program does more
work than the first program: the *injected* work, a known amount.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.campaign import conduct
from equipoise.campaign.blocks import cost_table
from equipoise.campaign.interim import DIFFERENCE_VERDICTS
from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.washouts import analysed_blocks
from equipoise.design.coin import fresh_seed
from equipoise.design.commands import find_program
from equipoise.ledger import Ledger
from equipoise.measure.environment import snapshot
from equipoise.measure.installation import native_programs
from equipoise.measure.trials import own_environment
from equipoise.model.host import CERTIFICATE_STUDY, Certificate
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import RunRecord
from equipoise.stats.arrays import NORMAL_MAD, FloatArray
from equipoise.stats.verdict import smallest_effect


class CertifyOptions(Struct, frozen=True):
    """Options for certifying a host."""

    campaigns: int = 60
    """Number of campaigns of equal programs."""
    blocks: int = 40
    """Maximum number of blocks of each campaign of equal programs."""
    injected_campaigns: int = 20
    """Number of campaigns with injected work."""
    injected_blocks: int = 120
    """Maximum number of blocks of each campaign with injected work."""
    injected_percent: float = 3.0
    """Injected work, in percent of the work of the first program."""
    work: int = 5_000_000
    """Number of steps of the first program."""
    alpha: float = 0.05
    """Maximum probability of a false difference in a campaign."""


def certify(
    options: CertifyOptions,
    ledger: Ledger,
    on_campaign: Callable[[int, int], None],
    *,
    now: Callable[[], float],
    runner_factory: conduct.RunnerFactory = conduct.native_runner,
) -> Certificate:
    """Measure this host's rate of false alarms, and the effects that it can detect.

    ``on_campaign`` receives the number of finished campaigns and the number of all campaigns.

    Raise `ConditionFailed` if a program fails, and `Interrupted` if the user stops a campaign.
    """
    total = options.campaigns + options.injected_campaigns
    records: list[RunRecord] = []
    for number in range(total):
        on_campaign(number, total)
        plan = _plan(options, is_equal=number < options.campaigns)
        run_id = conduct.start(
            plan, ledger, ProgressListener(), runner_factory=runner_factory, now=now
        )
        records.append(ledger.read_run(run_id))
    equal_records, injected_records = records[: options.campaigns], records[options.campaigns :]
    return _certificate(options, equal_records, injected_records, snapshot(), now())


def _plan(options: CertifyOptions, *, is_equal: bool) -> Plan:
    program = find_program("equipoise-workload", native_programs(), own_environment())
    factor = 1.0 if is_equal else 1.0 + options.injected_percent / 100.0
    second_work = round(options.work * factor)
    works = {"spin": options.work, "spin again" if is_equal else "spin more": second_work}
    return Plan(
        study=CERTIFICATE_STUDY,
        conditions=tuple(
            Condition(name, (program, "spin", "--work", str(steps)))
            for name, steps in works.items()
        ),
        measure=Measure(working_folder="/"),
        stopping=Stopping(
            blocks=options.blocks if is_equal else options.injected_blocks,
            budget_s=1e9,
            min_seconds=0.0,
        ),
        judgement=Judgement(alpha=options.alpha, min_effect=0.0 if is_equal else 1.0),
        seed=fresh_seed(),
    )


def _certificate(
    options: CertifyOptions,
    equal_records: list[RunRecord],
    injected_records: list[RunRecord],
    environment: dict[str, Any],
    made_at: float,
) -> Certificate:
    false_alarms = sum(_verdict(record) in DIFFERENCE_VERDICTS for record in equal_records)
    detection_blocks = [
        len(analysed_blocks(record)) for record in injected_records if _verdict(record) == "slower"
    ]
    differences = np.concatenate([_differences(record) for record in equal_records])
    trial_s = statistics.median(
        trial.accounting.wall_s or 0.0 for record in equal_records for trial in record.trials
    )
    block_s = statistics.median(_block_seconds(record) for record in equal_records)

    def smallest_effect_percent(seconds: float) -> float | None:
        """Return the smallest effect that 90 % of campaigns with this duration detect."""
        blocks, seed = int(seconds / block_s), equal_records[0].plan.seed
        effect = smallest_effect(differences, blocks, alpha=options.alpha, seed=seed)
        return None if effect is None else float(100.0 * np.expm1(effect))

    deviations = np.abs(differences - np.median(differences))
    return Certificate(
        made_at=made_at,
        **{fact: environment.get(fact) for fact in ("boot_id", "kernel", "cpu_model", "equipoise")},
        alpha=options.alpha,
        campaigns=len(equal_records),
        blocks=options.blocks,
        false_alarms=false_alarms,
        injected_percent=options.injected_percent,
        injected_campaigns=len(injected_records),
        detected_campaigns=len(detection_blocks),
        blocks_to_detection=statistics.median(detection_blocks) if detection_blocks else 0.0,
        trial_s=trial_s,
        ratio_spread=float(100.0 * NORMAL_MAD * np.median(deviations)),
        smallest_effect_in_a_minute=smallest_effect_percent(60.0),
        smallest_effect_in_ten_minutes=smallest_effect_percent(600.0),
        runs=tuple(record.id for record in (*equal_records, *injected_records)),
    )


def _verdict(record: RunRecord) -> str:
    return primary_comparisons(record.plan, analysed_blocks(record))[0].verdict


def _differences(record: RunRecord) -> FloatArray:
    """Return the difference of the log wall times in each block, shape (blocks,)."""
    log_times = np.log(cost_table(record.plan, analysed_blocks(record), "wall_s").costs)
    return np.asarray(log_times[:, 1] - log_times[:, 0])


def _block_seconds(record: RunRecord) -> float:
    """Return the mean seconds of a block, including the pauses between blocks."""
    measured = [trial for trial in record.trials if trial.phase == "measured"]
    seconds = measured[-1].started_at - measured[0].started_at
    return (seconds + (measured[-1].accounting.wall_s or 0.0)) / len(analysed_blocks(record))
