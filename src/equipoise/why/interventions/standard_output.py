"""Standard output thrown away, or to a file; of a server's client."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.plan import Condition, Output
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Alter, Intervention

CAUSES = frozenset({"tiny_writes"})
SEEN = "the launcher opens it for each trial; a command that redirects its output goes its own way"


def offered(case: Case) -> tuple[Intervention, ...]:
    """Each where it does not go there already."""
    return (
        Intervention(
            only_confirms=True,
            name="output_discarded",
            words="throwing the output away (/dev/null)",
            causes=CAUSES,
            alter=_to(Output("discard"), case),
            verified=SEEN,
        ),
        Intervention(
            only_confirms=True,
            name="output_to_file",
            words="sending the output to a file",
            causes=CAUSES,
            # The launcher's own file without a name: nothing is left behind.
            alter=_to(Output("count"), case),
            verified=SEEN,
            advice="{command} > FILE",
        ),
    )


def _to(output: Output, case: Case) -> Alter:
    def alter(condition: Condition) -> Condition:
        before = condition.output or case.output
        goes_there = before == output or (output.kind == "count" and before.kind == "file")
        return condition if goes_there else replace(condition, output=output)

    return alter
