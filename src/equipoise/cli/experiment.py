"""The second half of `equipoise why`: what evidence suggests is changed on purpose, and judged."""

from __future__ import annotations

import sys

from equipoise.campaign import conduct
from equipoise.cli.experiment_options import usual_trying
from equipoise.cli.progress import watcher_for
from equipoise.cli.wanted import Wanted
from equipoise.ledger import Ledger
from equipoise.measure.installation import host_site
from equipoise.model.record import RunRecord
from equipoise.model.safe_text import visible
from equipoise.why.campaigns import judge_of
from equipoise.why.experiment.plan import NothingToTry, OpenGap
from equipoise.why.experiment.proposing import Trying, planned_experiment
from equipoise.why.explanation import evidence_of_gap, suggested
from equipoise.why.gap import Gap, largest_gap


def with_experiment(
    record: RunRecord, gap: Gap, trying: Trying, ledger: Ledger, wanted: Wanted
) -> None:
    """Run the campaign that tests what was found; without anything to try, say so.

    Raises
    ------
    KeyboardInterrupt
        The user interrupted it: it was said how to go on.
    ConditionFailed
        One of the two conditions failed by itself.
    """
    causes = suggested(evidence_of_gap(record, gap))
    try:
        plan = planned_experiment(OpenGap(record, gap.contrast, causes), trying, host_site())
    except NothingToTry as error:
        _say(f"nothing is tested: {error.what}\n  hint: {error.hint}")
        return
    assert plan.explains is not None
    if not wanted.quiet:
        tried = ", ".join(one.intervention for one in plan.explains.attempts)
        _say(f"testing by interventions on both: {tried}")
    watcher = watcher_for(quiet=wanted.quiet, color=wanted.color)
    try:
        conduct.start(plan, ledger, watcher, judge_of=judge_of)
    except conduct.Interrupted as interruption:
        _say(
            "interrupted; nothing that was measured is lost\n"
            f"  hint: equipoise resume {interruption.run_id}"
        )
        raise KeyboardInterrupt from None


def with_experiment_on_largest(record: RunRecord, ledger: Ledger, wanted: Wanted) -> None:
    """Test what was found to cause the largest gap of a campaign, if it is called."""
    gap = largest_gap(record)
    if gap is not None and gap.is_called:
        with_experiment(record, gap, usual_trying(record.plan), ledger, wanted)


def say_it_was_tested(by: RunRecord) -> None:
    """Say which campaign the shares are from, and how to have more."""
    _say(
        f"tested already, by campaign {by.id}\n"
        f"  hint: --again tests anew; equipoise resume {by.id} --min-blocks 40 goes on with it "
        "until every interval is narrower"
    )


def _say(words: str) -> None:
    print(f"equipoise: {visible_lines(words)}", file=sys.stderr, flush=True)


def visible_lines(words: str) -> str:
    """Several lines, each without what a terminal would obey."""
    return "\n".join(visible(line) for line in words.split("\n"))
