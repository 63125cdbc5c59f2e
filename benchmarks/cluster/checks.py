"""What must hold when a repetition has ended, whatever went wrong in it."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.cluster.faults import Injected
from benchmarks.cluster.fleet import Fleet
from equipoise.cli.options import OutputOptions
from equipoise.cli.results import read_result
from equipoise.kinds.fleet.terms import FleetDocument
from equipoise.ledger import Ledger, open_for_reading
from equipoise.report.json_document import encode


class Findings(Struct, frozen=True):
    """What a repetition came to."""

    trials: int
    """Trials of all hosts, warm-up included."""
    problems: tuple[str, ...]
    """What does not hold; empty if all does."""
    mean: tuple[float | None, float | None]
    """The fleet's interval of the mean ratio."""
    truth: float
    """Planted mean."""

    @property
    def covers(self) -> bool:
        """Whether the interval has two ends and holds the planted mean."""
        low, high = self.mean
        return low is not None and high is not None and low <= self.truth <= high


def examine(fleet: Fleet, injected: Sequence[Injected], folder: Path) -> Findings:
    """Compare the coordinator's ledger with those of the hosts, and the answer with the truth."""
    problems: list[str] = []
    union = folder / "union.db"
    fleet.hub.run(
        ["equipoise.cli", "merge", str(union), *(str(host.ledger) for host in fleet.hosts)]
    )
    with open_for_reading(fleet.hub.ledger) as pulled, open_for_reading(union) as merged:
        result = read_result("last", pulled, OutputOptions()).document
        members = [member.identity for member in pulled.read_run("last").members]
        if len(members) != len(fleet.hosts) or len(merged.runs()) != len(fleet.hosts):
            problems.append(f"{len(members)} members, {len(merged.runs())} runs in the union")
        trials = 0
        for host, identity in zip(fleet.hosts, members, strict=False):
            name = host.folder.name
            with open_for_reading(host.ledger) as own:
                documents = [document(ledger, identity) for ledger in (own, pulled, merged)]
            if documents[0] is None or documents != documents[:1] * len(documents):
                problems.append(f"{name}: its ledger, the coordinator's and the union differ")
                continue
            counted = json.loads(documents[0])["trials"]
            trials += count_trials(name, counted, fleet.plan.blocks, problems)
    for one in injected:
        for host, committed in zip(fleet.hosts, one.committed, strict=True):
            kept = host.trials()
            lost = [key for key, value in committed.items() if kept.get(key) != value]
            if lost:
                problems.append(f"{host.folder.name} lost {len(lost)} trials: {one.fault.name}")
    assert isinstance(result, FleetDocument), "a fleet has a result of its kind"
    answers = [one for one in result.comparisons if one.metric == "wall_s"]
    if len(answers) != 1 or answers[0].fleet is None:
        return Findings(trials, (*problems, f"{len(answers)} verdicts"), (None, None), 1.0)
    truth = math.exp(statistics.fmean(map(math.log, fleet.plan.ratios)))
    return Findings(trials, tuple(problems), answers[0].fleet.mean.ratio_ci, truth)


def document(ledger: Ledger, identity: str) -> bytes | None:
    """Return what `equipoise show --json` writes of a run, or ``None`` if it is not there."""
    run = ledger.id_of(identity)
    return None if run is None else encode(read_result(run, ledger, OutputOptions()).document)


def count_trials(host: str, trials: list[dict[str, Any]], blocks: int, problems: list[str]) -> int:
    """Return the number of trials; say if one is twice, or a block is missing."""
    keys = [(one["phase"], one["block"], one["position"]) for one in trials]
    if len(set(keys)) != len(keys):
        problems.append(f"{host}: {len(keys) - len(set(keys))} trials are there twice")
    in_blocks = Counter(block for phase, block, _ in keys if phase == "measured")
    whole = sum(count == 2 for count in in_blocks.values())
    # A block in which the laboratory was killed stays as it is, and another one is measured.
    if whole != blocks:
        problems.append(f"{host}: {whole} whole blocks of {blocks}")
    return len(keys)
