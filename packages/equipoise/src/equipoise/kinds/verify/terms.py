"""Additions of a verification to the plan of a campaign (its terms) and to the result document."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct, field

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG, Terms
from equipoise.model.quantities import Interval
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import Relinking, Revision
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord

STUDY = "verify"
"""Name of the study in the plan of every verification."""
BASELINE, CANDIDATE = 0, 1
"""Indices of the conditions of every verification."""
OUTPUT_SOURCE = "output"
"""Source of the observation that records a difference between two outputs."""

ObjectionKind = Literal[
    "changed_benchmark", "reads_proc", "kept_file", "left_process", "names_measurement"
]
"""``changed_benchmark``: the change has a file that decides what is measured. ``reads_proc``: it
reads a file below ``/proc`` that the baseline does not read. ``kept_file``: it reads a file that an
earlier run left. ``left_process``: it leaves processes behind. ``names_measurement``: the change
adds a line that names a clock, ``/proc/`` or a variable of Equipoise."""


class Objection(Struct, frozen=True):
    """One reason why a shorter time of the candidate may not be a speed-up."""

    kind: ObjectionKind
    place: str
    """File, and for a line of the change also its number: ``sort.c:12``."""
    detail: str = ""
    """The line of the change; empty for other kinds."""


class OutputDifference(Struct, frozen=True):
    """The first difference between the outputs of the two trials of a block."""

    phase: Literal["warmup", "measured"]
    block: int
    """Number of the block within its phase."""
    line: int | None
    """Number of the first line that differs, from 1; null if ``expected`` and ``actual`` do not
    come from the outputs."""
    expected: str
    """This line of the baseline, or how its trial ended."""
    actual: str
    """This line of the candidate, how its trial ended, or the last line of ``--check``."""


class BuildDigest(Struct, frozen=True):
    """The files of a build that decide what a trial runs."""

    files: dict[str, str]
    """SHA-256 of each file of the working tree that the command names, by its path; of all files
    that git does not track, if the command names none."""


class EarlierVerification(Struct, frozen=True):
    """A certified verification that is repeated."""

    run: str
    """Identity of the earlier campaign, 32 hexadecimal digits."""
    ratio: float
    ratio_ci: Interval
    different_builds: tuple[str, ...]
    """Files of the builds whose content differs from that of the earlier campaign."""


class VerifyPlan(Struct, Terms, frozen=True, kw_only=True, tag_field=TAG, tag="verify"):
    """Terms of a verification. `Terms` explains the class variables."""

    noun: ClassVar[str] = "verification"
    can_rank: ClassVar[bool] = False
    describes_single_condition: ClassVar[bool] = False
    not_adjustable_because: ClassVar[str | None] = "a verification is never adjusted"
    restart_hint: ClassVar[str | None] = "verify again"
    baseline: Revision
    candidate: Revision
    trees: tuple[str, str]
    """Git's hash of the tree of both commits."""
    folder: str
    """Folder in the repository in which the build and the trials ran; empty for the root."""
    command: tuple[str, ...]
    """Command of the trials, as the user typed it."""
    build: str | None
    """Shell line that built the revisions."""
    check: str | None
    """Shell line that compares two outputs; ``None`` if they must be equal byte for byte."""
    input_command: str | None
    """Shell line that writes the input of each block; ``None`` without an input."""
    builds: tuple[BuildDigest, BuildDigest]
    objections: tuple[Objection, ...] = ()
    """Objections that were known before the first block."""
    unobserved_because: str | None = None
    """Reason why the files of the candidate were not observed; ``None`` if they were."""
    relinking: Relinking | None = None
    """``None`` unless programs are linked again for each block (``--relink``)."""
    earlier: EarlierVerification | None = None
    """The verification that this one repeats (``--replay``)."""

    def check_resumable(self, run: str) -> None:
        """Refuse to continue, because the checked-out revisions may no longer exist."""
        raise UnusableInput(
            f"run {run} is a verification, and its inputs were removed when it ended",
            hint=f"run equipoise verify again, with a larger {option('budget')}",
        )

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain, because the checked-out revisions may no longer exist."""
        raise UnusableInput(
            f"run {record.id} is a verification, and its inputs were removed when it ended",
            hint="build both revisions, compare them with equipoise compare, and explain that run",
        )


VerifyAnswer = Literal["certified", "not faster", "wrong output", "cannot say"]
"""``certified``: faster by at least the smallest effect that matters, with the same output, and
without an objection."""


class ReplayResult(Struct, frozen=True):
    """Whether a certified speed-up was found again."""

    earlier: EarlierVerification
    replicates: bool
    """Whether the answer is ``certified`` again."""
    intervals_overlap: bool
    """Whether the speed-up may have one size in both campaigns. Another host, or another load, may
    have another ratio."""


class VerifyResult(Struct, frozen=True):
    """The result of a verification."""

    answer: VerifyAnswer
    baseline: Revision
    candidate: Revision
    summary: str
    hint: str | None
    """Action that helps if the answer is not ``certified``."""
    ratio: float | None
    """Time of the candidate over that of the baseline in a typical block; null if unknown."""
    ratio_ci: Interval
    compared_blocks: int
    """Number of measured blocks whose outputs were compared."""
    inputs_changed: bool
    """Whether each block had another input (``--input-command``)."""
    difference: OutputDifference | None = None
    """Null if all compared outputs are equal."""
    objections: tuple[Objection, ...] = ()
    check: str | None = None
    """Shell line that compared the outputs; null if they were compared byte for byte."""
    unobserved_because: str | None = None
    """Reason why the files of the candidate were not observed; null if they were."""
    relinking: Relinking | None = None
    """Null unless each block had links of its own."""
    builds: tuple[BuildDigest, ...] = field(default_factory=tuple)
    replay: ReplayResult | None = None
    """Null unless a certificate was replayed."""


class VerifyDocument(ResultDocument, frozen=True, kw_only=True, tag="verify"):
    """The result document of a verification."""

    verify: VerifyResult
