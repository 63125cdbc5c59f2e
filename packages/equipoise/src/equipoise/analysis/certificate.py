"""Certifies a host: measures its rate of false alarms, and the effects that it can detect.

Some campaigns compare a program with itself, and the others compare it with a program that has a
known amount of additional work.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.campaign import conduct
from equipoise.campaign.blocks import block_costs
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
from equipoise.stats.arrays import FloatArray
from equipoise.stats.verdict import smallest_effect

SECONDS_PER_MINUTE = 60.0


class CertifyOptions(Struct, frozen=True):
    """Options for certifying a host; in injected campaigns, one of two programs does more work."""

    campaigns: int = 60
    blocks: int = 40
    injected_campaigns: int = 20
    injected_blocks: int = 120
    injected: float = 3.0
    """Additional work of the second program, in percent."""
    work: int = 5_000_000
    alpha: float = 0.05


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

    Raise `ConditionFailed` if the certifying program failed. Raise `Interrupted` if the user
    interrupted it.
    """
    total = options.campaigns + options.injected_campaigns
    records: list[RunRecord] = []
    for number in range(total):
        on_campaign(number, total)
        plan = _plan(options, equal=number < options.campaigns)
        run_id = conduct.start(
            plan, ledger, ProgressListener(), runner_factory=runner_factory, now=now
        )
        records.append(ledger.read_run(run_id))
    equal_records, injected_records = records[: options.campaigns], records[options.campaigns :]
    return _certificate(options, equal_records, injected_records, snapshot(), now())


def _plan(options: CertifyOptions, *, equal: bool) -> Plan:
    program = find_program("equipoise-workload", native_programs(), own_environment())
    second_work = options.work if equal else round(options.work * (1.0 + options.injected / 100.0))
    works = {"spin": options.work, "spin again" if equal else "spin more": second_work}
    return Plan(
        study=CERTIFICATE_STUDY,
        conditions=tuple(
            Condition(name, (program, "spin", "--work", str(work))) for name, work in works.items()
        ),
        measure=Measure(working_folder="/"),
        stopping=Stopping(
            blocks=options.blocks if equal else options.injected_blocks,
            budget_s=1e9,
            min_seconds=0.0,
        ),
        judgement=Judgement(alpha=options.alpha, min_effect=0.0 if equal else 1.0),
        seed=fresh_seed(),
    )


def _certificate(
    options: CertifyOptions,
    equal_records: list[RunRecord],
    injected_records: list[RunRecord],
    environment: dict[str, Any],
    made_at: float,
) -> Certificate:
    called_different = sum(_verdict(record) in DIFFERENCE_VERDICTS for record in equal_records)
    found_block_counts = [
        len(analysed_blocks(record)) for record in injected_records if _verdict(record) == "slower"
    ]
    differences = np.concatenate([_differences(record) for record in equal_records])
    trial_s = statistics.median(
        trial.accounting.wall_s or 0.0 for record in equal_records for trial in record.trials
    )
    block_s = statistics.median(_block_seconds(record) for record in equal_records)

    def smallest_effect_percent(seconds: float) -> float | None:
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
        called_different=called_different,
        injected=options.injected,
        injected_campaigns=len(injected_records),
        injected_found=len(found_block_counts),
        injected_blocks=statistics.median(found_block_counts) if found_block_counts else 0.0,
        trial_s=trial_s,
        spread=float(100.0 * 1.4826 * np.median(deviations)),
        smallest_in_a_minute=smallest_effect_percent(SECONDS_PER_MINUTE),
        smallest_in_ten_minutes=smallest_effect_percent(10 * SECONDS_PER_MINUTE),
        runs=tuple(record.id for record in (*equal_records, *injected_records)),
    )


def _verdict(record: RunRecord) -> str:
    return primary_comparisons(record.plan, analysed_blocks(record))[0].verdict


def _differences(record: RunRecord) -> FloatArray:
    """Return the difference of the log wall times in each block, shape (blocks,)."""
    log_times = np.log(block_costs(record.plan, analysed_blocks(record), "wall_s").costs)
    return np.asarray(log_times[:, 1] - log_times[:, 0])


def _block_seconds(record: RunRecord) -> float:
    """Return the mean seconds of a block, including the pauses between blocks."""
    measured = [trial for trial in record.trials if trial.phase == "measured"]
    seconds = measured[-1].started_at - measured[0].started_at
    return (seconds + (measured[-1].accounting.wall_s or 0.0)) / len(analysed_blocks(record))
