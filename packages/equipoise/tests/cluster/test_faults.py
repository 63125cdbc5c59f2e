"""Three hosts in network namespaces, and everything that goes wrong goes wrong once.

The long form is ``python -m benchmarks.cluster``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cluster.__main__ import RATIOS, Length, repetition
from benchmarks.cluster.fleet import compiled
from benchmarks.cluster.network import namespaces, why_no_namespaces

pytest.importorskip("distributed")

SHORT = Length(seconds=0.1, blocks=60, shorter=0.05, patience_s=240.0)
"""Twelve seconds of trials on each host; cuts of one and three seconds."""


def test_no_trial_is_lost_or_doubled_after_one_fault_of_each_kind(tmp_path: Path) -> None:
    reason = why_no_namespaces()
    if reason is not None:
        pytest.skip(reason)
    program = compiled(tmp_path)
    done = repetition(tmp_path / "fleet", program, SHORT, 1, namespaces(len(RATIOS)))
    assert done.failure is None
    assert done.findings is not None and done.findings.problems == ()
    assert done.findings.trials >= len(RATIOS) * 2 * SHORT.blocks
