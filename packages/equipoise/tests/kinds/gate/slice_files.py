"""Slices as their files: campaigns of runners on a scripted clock."""

from __future__ import annotations

import random
from pathlib import Path
from unittest import mock

from msgspec import Struct
from msgspec.structs import replace

from equipoise.cli.ledger_slices import write_ledger_slice
from equipoise.kinds.gate.terms import GatePlan, SliceSource
from equipoise.model.host import HostReference
from equipoise.model.plan import Plan
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.fleets import identity_of
from packages.equipoise.tests.kinds.gate.test_analysis import gate_of

SOURCE = SliceSource(
    trees=("a" * 40, "b" * 40),
    folder=".",
    programs={"./bench": ("./bench", "--size", "1000")},
    tool=None,
    build="make",
    toolchain={"platform": "x86_64 glibc 2.36", "cc": "cc 12.2.0"},
    inputs={"/data/words": "c" * 64},
)


class ScriptedSlice(Struct, frozen=True):
    """One runner, and what its slice is to be."""

    name: str
    ratio: float = 1.0
    """Cost of the candidate over that of the baseline."""
    blocks: int = 60
    seed: int = 0
    """Of the coin; by default drawn from the name."""
    source: SliceSource = SOURCE


THREE = (ScriptedSlice("ada"), ScriptedSlice("bea"), ScriptedSlice("cleo"))
SLOWER = tuple(replace(one, ratio=1.06) for one in THREE)


def write_slice(folder: Path, scripted: ScriptedSlice, plan: Plan | None = None) -> Path:
    """Run the campaign of a slice, and write its file into a folder."""
    plan = gate_of(blocks=scripted.blocks) if plan is None else plan
    terms = plan.terms
    assert isinstance(terms, GatePlan)
    own = random.Random(scripted.name)
    plan = replace(
        plan,
        seed=scripted.seed or own.randrange(1 << 32),
        terms=replace(terms, slice=scripted.source),
    )
    medians = (0.010, 0.010 * scripted.ratio) * (len(plan.conditions) // 2)
    host = HostReference(identity_of(scripted.name), scripted.name)
    path = folder / f"{identity_of(scripted.name)[:4]}.db"
    with mock.patch("equipoise.ledger.store.this_host", lambda name: host):
        stage = Stage(folder / identity_of(scripted.name), medians=medians, random=own, noise=0.01)
        run = stage.start(plan)
        write_ledger_slice(stage.ledger, run, path)
        stage.ledger.close()
    return path


def write_slices(folder: Path, slices: tuple[ScriptedSlice, ...]) -> tuple[str, ...]:
    """Write the files of several slices; return their paths."""
    return tuple(str(write_slice(folder, one)) for one in slices)
