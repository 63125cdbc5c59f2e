"""Shows the question and the answer of a verification, and its limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.kinds.verify.analysis import objection_clause
from equipoise.kinds.verify.terms import VerifyDocument, VerifyResult
from equipoise.model.quantities import Interval, counted
from equipoise.report.document import (
    NOT_TERMINAL,
    TERMINAL,
    VERBOSE_TERMINAL,
    Bullets,
    Facts,
    Part,
    Section,
    Statement,
)
from equipoise.report.kind import KindReport, Title
from equipoise.report.news import Badge, Tone
from equipoise.report.units import capitalized, significant
from equipoise.shared.spelling import option

_TONES: dict[str, Tone] = {
    "certified": "equivalent",
    "not faster": "undecided",
    "wrong output": "slower",
    "cannot say": "undecided",
}
"""Colour of each answer on a site."""


class VerifyReport(KindReport):
    """The report of a verification."""

    def question(self, document: VerifyDocument) -> str | None:
        """Return the question of the verification."""
        verify = document.verify
        return (
            f"Is {verify.candidate.typed_name} really faster than "
            f"{verify.baseline.typed_name}, and is its output still right?"
        )

    def title(self, document: VerifyDocument, statements: Sequence[Statement]) -> Title | None:
        """Return the answer, and the lines below it."""
        verify = document.verify
        hint = () if verify.hint is None else (f"hint: {verify.hint}",)
        return _title(verify), (*_replay_sentences(verify), *hint, limits_of(verify))

    def scope_of(self, document: VerifyDocument) -> str | None:
        """Return the links, if each block had links of its own."""
        if document.verify.relinking is None:
            return None
        return "across links and processes, in this campaign on this host"

    def measured_parts(self, document: VerifyDocument) -> Iterator[Part]:
        """Build the objections, and a sentence about each check."""
        verify = document.verify
        objections = tuple(
            f"{capitalized(objection_clause(objection))}." for objection in verify.objections
        )
        checks = tuple(checks_of(verify))
        if objections:
            yield Bullets(objections, forms=TERMINAL)
        yield Bullets(checks, forms=VERBOSE_TERMINAL)
        parts: list[Part] = [Bullets((*objections, *checks))]
        digests = tuple(
            (f"{role} {path}", digest)
            for role, build in zip(("baseline", "candidate"), verify.builds, strict=False)
            for path, digest in build.files.items()
        )
        if digests:
            parts.append(Facts(digests))
        yield Section("What was checked", tuple(parts), forms=NOT_TERMINAL)

    def badges(self, document: VerifyDocument) -> Iterator[Badge]:
        """Yield a badge with the answer."""
        verify = document.verify
        name = f"{verify.baseline.typed_name} to {verify.candidate.typed_name}"
        yield Badge(name, verify.answer, _TONES[verify.answer])


def _title(verify: VerifyResult) -> str:
    """Return the answer; the statement below it has the ratio."""
    if verify.answer == "certified":
        outputs = "equal" if verify.check is None else "accepted"
        return f"Certified: it is faster, and every output was {outputs}."
    return "Not faster." if verify.answer == "not faster" else verify.summary


def limits_of(verify: VerifyResult) -> str:
    """Return the most important limits of the answer in one short line."""
    blocks = counted(verify.compared_blocks, "block")
    outputs = f"outputs compared in {blocks}"
    inputs = (
        "each block had another input"
        if verify.inputs_changed
        else f"the input never changed ({option('input_command')})"
    )
    unobserved = "" if verify.unobserved_because is None else "; files were not observed"
    return f"{capitalized(outputs)}; {inputs}{unobserved}."


def checks_of(verify: VerifyResult) -> Iterator[str]:
    """Yield a sentence about each check of a verification."""
    blocks = counted(verify.compared_blocks, "block")
    if verify.difference is None:
        way = "equal byte for byte" if verify.check is None else "accepted by the line of --check"
        yield f"Outputs were {way} in {blocks}."
    if verify.inputs_changed:
        yield "Each block had another input."
    else:
        yield (
            "The input never changed, so results that depend on this one input are not found: "
            f"{option('input_command', 'CMD')}."
        )
    if verify.unobserved_because is not None:
        yield f"Files and processes were not observed: {verify.unobserved_because}."
    else:
        yield "Two runs of the candidate were observed for files that keep results."
    if verify.relinking is not None:
        linker = verify.relinking.linker.partition(" (")[0]
        yield f"{linker} linked both revisions again for each block."


def _replay_sentences(verify: VerifyResult) -> Iterator[str]:
    """Yield whether a certified speed-up replicates, and which builds differ."""
    replay = verify.replay
    if replay is None:
        return
    then, now = _share_of_time(replay.earlier.ratio_ci), _share_of_time(verify.ratio_ci)
    verb = "replicates" if replay.replicates else "does not replicate"
    if replay.replicates and not replay.intervals_overlap:
        verb = "replicates with another size"
    yield f"The certificate {verb}: {then} of the baseline's time then, and {now} now."
    different = replay.earlier.different_builds
    if different:
        yield (
            f"The builds differ from those of the certificate in {counted(len(different), 'file')}:"
            f" {', '.join(different[:3])}."
        )
    else:
        yield "The builds are those of the certificate."


def _share_of_time(ratio_ci: Interval) -> str:
    """Return an interval of time ratios in percent, such as ``12 % to 15 %``."""
    ends = ("?" if end is None else f"{significant(100.0 * end, 2)} %" for end in ratio_ci)
    return " to ".join(ends)
