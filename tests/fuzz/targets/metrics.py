"""Metrics that a workload reports itself, from its file into the ledger and back."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.measure import workload_metrics
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, Sample, Trial
from tests.fuzz.case import Case, Target, WrongResult
from tests.fuzz.judge import command_line
from tests.fuzz.mutators import any_number, any_text, any_value, mutated_bytes, mutated_tree

READ, SHOWN = "read", "shown"
PLAN = Plan("compare", (Condition("a", ("a",)),), Measure("/"), Stopping(), Judgement(), 7)


def _make(generator: random.Random) -> Case:
    lines = [json.dumps(_line(generator)) for _ in range(generator.randrange(1, 8))]
    content = "\n".join(lines).encode()
    if generator.random() < 0.4:
        content = mutated_bytes(generator, content, ())
    return Case(SHOWN if generator.random() < 0.15 else READ, content)


def _line(generator: random.Random) -> Any:
    line: dict[str, Any] = {
        "metric": generator.choice(("latency_s", "wall_s", "rate", any_text(generator))),
        "value": generator.choice((0.25, 0.25, any_number(generator))),
    }
    if generator.random() < 0.5:
        line["iteration"] = generator.choice((0, 1, 7, any_number(generator)))
    for key, values in (
        ("unit", ("s", any_text(generator))),
        ("better", ("lower", "higher", any_text(generator))),
        ("resolution", (1e-9, any_value(generator))),
        (any_text(generator), (any_value(generator),)),
    ):
        if generator.random() < 0.3:
            line[key] = generator.choice(values)
    return mutated_tree(generator, line) if generator.random() < 0.3 else line


def _run(case: Case, folder: Path) -> None:
    path = folder / "metrics.jsonl"
    path.write_bytes(case.content)
    samples = workload_metrics.read_metrics(path).samples
    for one in samples:
        if not math.isfinite(one.value):
            raise WrongResult(f"a sample is {one.value}")
    if samples:
        _record(folder / "ledger.db", samples, shown=case.variant == SHOWN)


def _record(path: Path, samples: tuple[Sample, ...], *, shown: bool) -> None:
    with open_for_writing(path, durable=False) as ledger:
        run = ledger.begin_run(PLAN, {}, 1.0)
        for block in (1, 2):
            ledger.record_draw(run, Draw("measured", block, (0,), 0))
            trial = Trial("measured", block, 0, 0, 1.0, Accounting(wall_s=0.5), 0, samples=samples)
            ledger.record_trial(run, trial)
    with open_for_reading(path) as ledger:
        recorded = ledger.read_run(run).trials[1].samples
    if [(one.value, one.iteration) for one in recorded] != [
        (one.value, one.iteration) for one in samples
    ]:
        raise WrongResult("samples are other ones in the ledger than in the file")
    if shown:
        command_line("show", "last", "--ledger", str(path))


TARGET = Target("metrics", "metrics files of workloads (`EQUIPOISE_METRICS`)", 13, _make, _run)
