"""Makes the plan of a verification from two built revisions."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from equipoise.kinds.verify.outputs import OutputFiles
from equipoise.kinds.verify.terms import (
    STUDY,
    BuildDigest,
    EarlierVerification,
    Objection,
    VerifyPlan,
)
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import PRIMARY_METRIC, Judgement, Output, Plan, Stopping
from equipoise.revisions.commits import tree_hashes
from equipoise.revisions.executed_files import tracked_blobs
from equipoise.revisions.pairs import CheckoutPair, PairRequest
from equipoise.revisions.plan import Checkout, conditions_of_gate

_GIT_FOLDER = ".git"


class VerifyRequest(PairRequest, frozen=True, kw_only=True):
    """The user's request for a verification."""

    check: str | None = None
    """Shell line that compares two outputs; ``None`` if they must be equal byte for byte."""
    input_command: str | None = None
    """Shell line that writes the input of each block."""
    earlier: EarlierVerification | None = None
    """The verification that this one repeats."""
    earlier_builds: tuple[BuildDigest, ...] = ()
    """The builds of that verification."""

    def check_certifiable(self) -> None:
        """Raise `UnusableInput` if nobody else can check out the candidate."""
        if self.candidate.uncommitted:
            raise UnusableInput(
                "a certificate names commits, but the working tree has uncommitted changes",
                hint="commit the changes, or leave out --certificate",
            )


def verify_plan(
    request: VerifyRequest,
    checkouts: CheckoutPair,
    outputs: OutputFiles,
    input_file: Path | None,
    objections: tuple[Objection, ...],
) -> Plan:
    """Return the plan of a verification.

    Trials read ``input_file``, if any, and write to ``outputs``. Raise `UnusableInput` if a program
    does not exist.
    """
    repository = request.repository
    conditions, contrasts = conditions_of_gate(request.benchmarks, checkouts, None)
    conditions = tuple(
        replace(condition, output=Output("file", str(path)))
        for condition, path in zip(conditions, (outputs.expected, outputs.actual), strict=True)
    )
    plan = request.plan(
        STUDY,
        conditions,
        (PRIMARY_METRIC,),
        folder=str(checkouts[1].folder),
        warmup=1,
        stopping=Stopping(),
        judgement=Judgement(),
    )
    commits = (request.baseline.commit, request.candidate.commit)
    hashes = tree_hashes(repository, commits)
    builds = tuple(build_digest(checkout, request) for checkout in checkouts)
    earlier = request.earlier
    if earlier is not None:
        different = tuple(different_files(request.earlier_builds, builds))
        earlier = replace(earlier, different_builds=different)
    measure = replace(
        plan.measure, own_variables=False, input=None if input_file is None else str(input_file)
    )
    return replace(
        plan,
        measure=measure,
        chosen_contrasts=contrasts,
        terms=VerifyPlan(
            baseline=request.baseline,
            candidate=request.candidate,
            trees=(hashes[commits[0]], hashes[commits[1]]),
            folder=repository.inside,
            command=request.benchmarks[0].command,
            build=request.build,
            check=request.check,
            input_command=request.input_command,
            builds=(builds[0], builds[1]),
            objections=objections,
            earlier=earlier,
        ),
    )


def build_digest(checkout: Checkout, request: PairRequest) -> BuildDigest:
    """Return the digests of the files of a built revision that its command names.

    If the command names no file of the working tree, all files that git does not track count.
    """
    root = os.path.realpath(checkout.tree)
    named = (
        os.path.realpath(checkout.folder / word) for word in request.benchmarks[0].command if word
    )
    paths = [path for path in named if path.startswith(f"{root}/") and os.path.isfile(path)]
    if not paths:
        tracked = tracked_blobs(checkout.repository, checkout.revision.commit)
        paths = [path for path in _files_of(root) if os.path.relpath(path, root) not in tracked]
    return BuildDigest({os.path.relpath(path, root): _sha256(path) for path in sorted(set(paths))})


def different_files(earlier: Sequence[BuildDigest], builds: Sequence[BuildDigest]) -> Iterator[str]:
    """Yield the files of the builds that differ from those of earlier builds, with their role."""
    for role, before, now in zip(("baseline", "candidate"), earlier, builds, strict=True):
        for path in sorted({*before.files, *now.files}):
            if before.files.get(path) != now.files.get(path):
                yield f"{role} {path}"


def _files_of(root: str) -> list[str]:
    files: list[str] = []
    for parent, folders, names in os.walk(root):
        if _GIT_FOLDER in folders:
            folders.remove(_GIT_FOLDER)
        paths = (os.path.join(parent, name) for name in names)
        files += (path for path in paths if os.path.isfile(path) and not os.path.islink(path))
    return files


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
