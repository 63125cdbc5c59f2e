"""Join the slices of a gate: one run in the ledger, from whose slices one verdict is computed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from msgspec.structs import replace

from equipoise.cli.options.outputs import OutputOptions
from equipoise.cli.results import CampaignResult, read_result
from equipoise.design.command_line import arguments_after_options
from equipoise.kinds.gate.slices import Slice, merge_slices, read_slices
from equipoise.ledger import FIRST_SEGMENT, open_for_writing
from equipoise.ledger.rows import to_text
from equipoise.ledger.schema import IDENTITY_BYTES
from equipoise.model.host import shared_facts
from equipoise.model.plan import Plan

JOINED = "joined"
"""Reason for which the run of a join has stopped."""


def join_slices(
    paths: Sequence[Path], output: OutputOptions, *, fails_undecided: bool
) -> CampaignResult:
    """Record the join of slices in the ledger, with the slices, and return its result.

    Joining the same files again adds nothing to the ledger.

    Raise `UnusableInput` if the files do not belong together.
    """
    slices = read_slices(paths)
    plan = _joined_plan(slices, fails_undecided=fails_undecided)
    digest = blake2b(to_text(plan).encode(), digest_size=IDENTITY_BYTES).digest()
    with open_for_writing(output.ledger, durable=output.durable, host=output.host) as ledger:
        merge_slices(ledger, slices)
        run = ledger.id_of(digest.hex())
        if run is None:
            facts = shared_facts([piece.record.environment for piece in slices])
            run = ledger.begin_run(plan, facts, time.time(), identity=digest)
            ledger.end_segment(run, FIRST_SEGMENT, time.time(), JOINED)
        return read_result(run, ledger, output)


def _joined_plan(slices: Sequence[Slice], *, fails_undecided: bool) -> Plan:
    """Return the plan of a join: that of the first slice, with the identities of all slices."""
    first = slices[0]
    metrics = dict.fromkeys(metric for piece in slices for metric in piece.terms.metrics)
    terms = replace(
        first.terms,
        metrics=tuple(metrics),
        fails_undecided=fails_undecided,
        bisect_argvs=dict(_bisect_argvs(slices)),
        slice=None,
        joined=tuple(piece.record.identity for piece in slices),
    )
    arguments = arguments_after_options([str(piece.path) for piece in slices])
    options = ("--join", *(("--fail-undecided",) if fails_undecided else ()))
    return replace(
        first.plan, terms=terms, command_line=("equipoise", "gate", *options, *arguments)
    )


def _bisect_argvs(slices: Sequence[Slice]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for piece in slices:
        yield from piece.terms.bisect_argvs.items()
