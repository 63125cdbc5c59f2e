"""The certificate of a speed-up: a ledger with one run, and a digest of everything in it.

The digest finds a file that was changed by accident or by hand. It is not a signature: anybody
who can write a certificate can compute its digest. So a reader draws the coin of every block
again, computes the answer from the trials again, and repeats the measurement (``--replay``).
"""

from __future__ import annotations

import hashlib
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.cli.ledger_slices import write_ledger_slice
from equipoise.design.coin import draw_block
from equipoise.files.writing import read_whole
from equipoise.kinds.verify.terms import CANDIDATE, VerifyDocument, VerifyPlan, VerifyResult
from equipoise.ledger import Ledger, open_for_reading
from equipoise.ledger.opening import refuse_dubious_ownership
from equipoise.ledger.rows import to_text
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval
from equipoise.model.record import Observation, RunRecord
from equipoise.model.result import ResultDocument
from equipoise.why.result import result_of

CERTIFICATE_SOURCE = "certificate"
"""Source of the observation with the claim of a certificate."""
_RELATIVE_TOLERANCE = 1e-9
_HINT = "ask for the file again, or verify the change with equipoise verify --baseline REV"


class Claim(Struct, frozen=True):
    """The claim of a certificate."""

    answer: str
    ratio: float | None
    ratio_ci: Interval
    digest: str
    """SHA-256 of the plan, the draws, the trials, the warnings and the environment."""


def write_certificate(ledger: Ledger, record: RunRecord, verify: VerifyResult, file: Path) -> None:
    """Write the certificate of a campaign; raise `UnusableInput` if it cannot be written."""
    claim = Claim(verify.answer, verify.ratio, verify.ratio_ci, digest_of_record(record))
    observation = Observation(
        CERTIFICATE_SOURCE,
        CANDIDATE,
        repetition=1,
        position=0,
        observed_at=time.time(),
        document=msgspec.json.encode(claim),
        failure=None,
    )
    ledger.record_observation(record.id, observation)
    write_ledger_slice(ledger, record.id, file)


def digest_of_record(record: RunRecord) -> str:
    """Return the digest of everything that a campaign recorded, but for its claim."""
    content = (
        record.identity,
        record.plan,
        record.started_at,
        record.segments,
        record.draws,
        record.trials,
        record.warnings,
        tuple(
            observation
            for observation in record.observations
            if observation.source != CERTIFICATE_SOURCE
        ),
    )
    return hashlib.sha256(to_text(content).encode()).hexdigest()


class CertifiedRun(Struct, frozen=True):
    """The campaign of a certificate, whose claim agrees with its trials."""

    record: RunRecord
    terms: VerifyPlan
    verify: VerifyResult


def read_certificate(file: Path) -> CertifiedRun:
    """Read a certificate, and compute its answer again from the trials.

    Raise `UnusableInput` if the file is not a certificate, was changed, or its trials give another
    answer.
    """
    record = _only_run_in(file)
    claim = None if record is None else _claim_of(record)
    terms = None if record is None else record.plan.terms
    if (
        record is None
        or claim is None
        or not isinstance(terms, VerifyPlan)
        or terms.baseline.uncommitted
        or terms.candidate.uncommitted
    ):
        raise UnusableInput(
            f"{file} is not a certificate of equipoise verify",
            hint="write one with equipoise verify --baseline REV --certificate FILE",
        )
    if claim.digest != digest_of_record(record):
        raise UnusableInput(
            f"{file} was changed: its digest is not that of its plan, draws and trials", hint=_HINT
        )
    _check_draws(record, file)
    document: ResultDocument = result_of(record)
    assert isinstance(document, VerifyDocument)
    verify = document.verify
    if verify.answer != "certified" or verify.ratio is None:
        raise UnusableInput(
            f"the trials of {file} do not certify a speed-up. {verify.summary}", hint=_HINT
        )
    if not _agree((claim.ratio, *claim.ratio_ci), (verify.ratio, *verify.ratio_ci)):
        raise UnusableInput(f"{file} claims another interval than its trials give", hint=_HINT)
    return CertifiedRun(record, terms, verify)


def _only_run_in(file: Path) -> RunRecord | None:
    """Return the only run in a ledger; ``None`` if it has several runs.

    A copy is read, because a reader leaves files next to a ledger.
    """
    refuse_dubious_ownership(file.absolute())
    with tempfile.TemporaryDirectory(prefix="equipoise-certificate-") as folder:
        copy = Path(folder, file.name)
        copy.touch(0o600)
        copy.write_bytes(read_whole(file, hint=_HINT))
        with open_for_reading(copy) as ledger:
            return ledger.read_run() if len(ledger.runs()) == 1 else None


def _agree(claimed: Sequence[float | None], computed: Sequence[float | None]) -> bool:
    """Return whether numbers agree as far as another installation computes them."""
    return all(
        one == other
        if one is None or other is None
        else math.isclose(one, other, rel_tol=_RELATIVE_TOLERANCE)
        for one, other in zip(claimed, computed, strict=True)
    )


def _claim_of(record: RunRecord) -> Claim | None:
    for observation in reversed(record.observations):
        if observation.source == CERTIFICATE_SOURCE and observation.document is not None:
            return msgspec.json.decode(observation.document, type=Claim)
    return None


def _check_draws(record: RunRecord, file: Path) -> None:
    """Draw the coin of each block again; raise `UnusableInput` if a recorded draw differs."""
    for draw in record.draws:
        again = draw_block(record.plan, draw.phase, draw.block)
        order = tuple(
            trial.condition
            for trial in sorted(
                (
                    trial
                    for trial in record.trials
                    if (trial.phase, trial.block) == (draw.phase, draw.block)
                ),
                key=lambda trial: trial.position,
            )
        )
        if again != draw or order != draw.order[: len(order)]:
            raise UnusableInput(
                f"{file} was changed: the order of {draw.phase} block {draw.block} is not that of "
                "its seed",
                hint=_HINT,
            )
