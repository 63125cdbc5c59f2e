"""Compute the answer of a verification from its plan and its record."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.assignments import Replacer
from equipoise.analysis.carry_over import with_carry_over_checks
from equipoise.analysis.comparisons import Blocks, primary_comparisons
from equipoise.analysis.kind import AnalysisKind, KindResult
from equipoise.analysis.redaction import TextReplacements
from equipoise.campaign.blocks import complete_blocks
from equipoise.campaign.interim import DIFFERENCE_VERDICTS
from equipoise.kinds.verify.blocks import is_comparable
from equipoise.kinds.verify.terms import (
    BASELINE,
    CANDIDATE,
    OUTPUT_SOURCE,
    Objection,
    OutputDifference,
    ReplayResult,
    VerifyAnswer,
    VerifyPlan,
    VerifyResult,
)
from equipoise.model.quantities import Interval, counted
from equipoise.model.record import RunRecord
from equipoise.model.result import Comparison
from equipoise.shared.spelling import option

_LEFT_PROCESSES = "left_processes"
"""Code of the warning about a condition that left processes behind."""
OBJECTION_PHRASES = {
    "changed_benchmark": "the change has the file {place}, which decides what is measured",
    "reads_proc": "the candidate reads {place}",
    "kept_file": "the candidate reads {place}, which an earlier run left",
    "left_process": "the candidate leaves processes behind",
    "names_measurement": "{place} adds {detail}",
}
"""Clause of each kind of objection."""
_OBJECTION_HINTS = {
    "changed_benchmark": "commit this file to the baseline, too, and verify the rest of the change",
    "reads_proc": "read the code that does it: the file tells who runs and what else runs",
    "kept_file": "remove the file before each run, or give each block its own input with "
    "{input_command}",
    "left_process": "end all processes with the program: they may keep results for the next run",
    "names_measurement": "read this line: code that can see a measurement can cheat",
}


class VerifyAnalysis(AnalysisKind):
    """Analysis of a verification: the answer in addition to the result of the comparison."""

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the answer."""
        return KindResult({"verify": verify_result(record, blocks)})

    def replace_in_terms(self, terms: VerifyPlan, replacement: Replacer) -> VerifyPlan:
        """Return the terms; their command is that of the conditions, as the user typed it."""
        return terms

    def hide_in_terms(self, terms: VerifyPlan, hidden: TextReplacements) -> VerifyPlan:
        """Return the terms without hidden values in paths, lines and commands."""

        def hide(text: str | None) -> str | None:
            return None if text is None else hidden.replace_in_text(text)

        return replace(
            terms,
            command=tuple(map(hidden.replace_in_text, terms.command)),
            build=hide(terms.build),
            check=hide(terms.check),
            input_command=hide(terms.input_command),
            unobserved_because=hide(terms.unobserved_because),
            objections=tuple(
                replace(
                    objection,
                    place=hidden.replace_in_text(objection.place),
                    detail=hidden.replace_in_text(objection.detail),
                )
                for objection in terms.objections
            ),
        )


class _Facts(Struct, frozen=True):
    """Facts from which the answer follows."""

    terms: VerifyPlan
    comparison: Comparison | None
    """``None`` if no block is complete."""
    blocks: int
    compared_blocks: int
    difference: OutputDifference | None
    objections: tuple[Objection, ...]


def verify_result(record: RunRecord, blocks: Blocks) -> VerifyResult:
    """Return the answer of a verification."""
    facts = _facts_of(record, blocks)
    terms, comparison = facts.terms, facts.comparison
    answer, summary, hint = _answer(facts)
    ratio = None if comparison is None else comparison.ratio
    ratio_ci: Interval = (None, None) if comparison is None else comparison.ratio_ci
    return VerifyResult(
        answer=answer,
        baseline=terms.baseline,
        candidate=terms.candidate,
        summary=summary,
        hint=hint,
        ratio=ratio,
        ratio_ci=ratio_ci,
        compared_blocks=facts.compared_blocks,
        inputs_changed=terms.input_command is not None,
        difference=facts.difference,
        objections=facts.objections,
        check=terms.check,
        unobserved_because=terms.unobserved_because,
        relinking=terms.relinking,
        builds=terms.builds,
        replay=_replay(terms, answer, ratio_ci),
    )


def _facts_of(record: RunRecord, blocks: Blocks) -> _Facts:
    plan = record.plan
    terms = plan.terms
    assert isinstance(terms, VerifyPlan)
    complete = complete_blocks(record.draws, record.trials)
    comparisons = with_carry_over_checks(plan, complete, primary_comparisons(plan, blocks))
    pairs = [{trial.condition: trial for trial in block} for block in blocks.values()]
    return _Facts(
        terms,
        comparisons[0] if comparisons and blocks else None,
        blocks=len(pairs),
        compared_blocks=sum(is_comparable(pair[BASELINE], pair[CANDIDATE]) for pair in pairs),
        difference=_recorded_difference(record),
        objections=(*terms.objections, *_left_processes(record)),
    )


def _recorded_difference(record: RunRecord) -> OutputDifference | None:
    for observation in record.observations:
        if observation.source == OUTPUT_SOURCE and observation.document is not None:
            return msgspec.json.decode(observation.document, type=OutputDifference)
    return None


def _left_processes(record: RunRecord) -> tuple[Objection, ...]:
    conditions = {
        warning.condition for warning in record.warnings if warning.code == _LEFT_PROCESSES
    }
    return (
        (Objection("left_process", record.plan.conditions[CANDIDATE].name),)
        if CANDIDATE in conditions and BASELINE not in conditions
        else ()
    )


def _answer(facts: _Facts) -> tuple[VerifyAnswer, str, str | None]:
    """Return the answer, its sentence, and what to do next."""
    comparison = facts.comparison
    if facts.difference is not None:
        return "wrong output", difference_sentence(facts.difference), _difference_hint(facts)
    if facts.objections:
        first = facts.objections[0]
        others = len(facts.objections) - 1
        suffix = f", and {counted(others, 'more objection')}" if others else ""
        hint = _OBJECTION_HINTS[first.kind].format(input_command=option("input_command"))
        return "cannot say", f"Cannot say: {objection_clause(first)}{suffix}.", hint
    more_time = f"run again with a larger {option('budget')}"
    if comparison is None:
        return "cannot say", "Cannot say: no block is complete.", more_time
    if comparison.verdict == "undecided":
        return "cannot say", f"Cannot say: {comparison.summary}", more_time
    if comparison.verdict != "faster":
        assert comparison.verdict in ("equivalent", *DIFFERENCE_VERDICTS)
        return "not faster", f"Not faster: {comparison.summary}", None
    if facts.compared_blocks < facts.blocks:
        count = counted(facts.blocks - facts.compared_blocks, "block")
        return (
            "cannot say",
            f"Cannot say: a trial ran out of time in {count}, so its output is unknown.",
            f"give trials more time with {option('timeout')}",
        )
    return "certified", f"Certified: {comparison.summary}", None


def objection_clause(objection: Objection) -> str:
    """Return an objection as a clause."""
    return OBJECTION_PHRASES[objection.kind].format(place=objection.place, detail=objection.detail)


def difference_sentence(difference: OutputDifference) -> str:
    """Return the sentence about the first difference of outputs."""
    phase = "warm-up block" if difference.phase == "warmup" else "block"
    place = f"Wrong output in {phase} {difference.block}"
    if difference.line is None:
        return f"{place}: `{difference.actual}` instead of `{difference.expected}`."
    return (
        f"{place}: line {difference.line} is `{difference.actual}` instead of "
        f"`{difference.expected}`."
    )


def _difference_hint(facts: _Facts) -> str:
    if facts.terms.check is not None:
        return f"correct the candidate until the line of {option('check')} accepts its output"
    return (
        "correct the candidate; if the baseline's own output varies, compare with "
        f"{option('check', 'CMD')}"
    )


def _replay(terms: VerifyPlan, answer: VerifyAnswer, ratio_ci: Interval) -> ReplayResult | None:
    earlier = terms.earlier
    if earlier is None:
        return None
    overlap = intervals_overlap(earlier.ratio_ci, ratio_ci)
    return ReplayResult(earlier, answer == "certified", overlap)


def intervals_overlap(one: Sequence[float | None], other: Sequence[float | None]) -> bool:
    """Return whether two intervals have a common point; an unknown end is unlimited."""
    (low, high), (other_low, other_high) = one, other
    return not (
        (high is not None and other_low is not None and high < other_low)
        or (other_high is not None and low is not None and other_high < low)
    )
