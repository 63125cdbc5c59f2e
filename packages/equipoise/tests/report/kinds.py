"""A campaign of each kind that has a page, as the real code makes its documents."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from equipoise.analysis.reference import compare_with_reference
from equipoise.analysis.result import analyse_campaign as result_of
from equipoise.analysis.shape import SCOPE_OF_TYPICAL
from equipoise.analysis.wording import typical_sentence
from equipoise.kinds.gate.terms import GateDocument, GateResult, GateRow
from equipoise.kinds.imported.terms import ImportedDocument, ImportedResult, ImportSource
from equipoise.model.record import RunRecord
from equipoise.model.result import (
    Comparison,
    RankedCondition,
    Ranking,
    ResultDocument,
    SampleComparison,
    TypicalValue,
)
from equipoise.model.revisions import Revision
from equipoise.model.why import Explanation, ExtraTime, Status, TimePart
from equipoise.report.builders.result import ReportInput
from equipoise.studies.catalogue import analysis_of, with_findings
from packages.equipoise.tests.bisections import bisect_document
from packages.equipoise.tests.documents import (
    CLOSED,
    comparison_of,
    document_as,
    document_of,
    points_of,
)
from packages.equipoise.tests.fleets import THREE, ScriptedHost, fleet_record, identity_of
from packages.equipoise.tests.histories import history_document, history_result, series_of
from packages.equipoise.tests.plans import plan_of
from packages.studies.tests.builtin.synthetic import study_document
from packages.studies.tests.primitives.campaigns import ProbeRunner, plan_of_rows, record_of

FLAMES = b"""<svg xmlns='http://www.w3.org/2000/svg' width='600' height='40' viewBox='0 0 600 40'>
<rect width='600' height='18' y='20' fill='#ff8080'/><text x='4' y='34'>main</text></svg>"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A page, and what must be read on it at first sight."""

    name: str
    reported: Callable[[str], ReportInput]
    """With this in every name and every text that somebody can choose."""
    answer: tuple[str, ...]
    """Texts that the answer contains if nothing else is in it."""
    charts: int
    """At least so many."""


def kinds() -> tuple[Kind, ...]:
    """A comparison, several, a study, primitives, a cause, a gate, a search, a history, …"""
    return (
        Kind("comparison", compared, ("b is slower than a",), 3),
        Kind("many", many, ("8 comparisons: ", "The largest difference: "), 3),
        Kind("sekhon2006", sekhon2006, ("The 15 KB policy costs", "8 comparisons: "), 5),
        Kind("os", primitives, ("Operating system primitives", "null_call"), 2),
        Kind("os against", against_another, ("1 of 5 rows changed", "Costs more: fork"), 2),
        Kind("why", explained, ("b is slower", "Why (confirmed)", "closes 97 % [94, 99]"), 3),
        Kind("gate", gated, ("The gate fails: b is slower.",), 2),
        Kind("bisection", bisected, ("made it 3.10 % slower", "it is this one (95 %)"), 1),
        Kind(
            "history",
            historied,
            ("3 changes in 24 commits", "The latest change: The 4"),
            2,
        ),
        Kind("alone", alone, ("a takes 50", " in a typical run ("), 2),
        Kind(
            "six", six, ("zstd -1 or lz4 is the fastest of 6; zstd -1 leads so far: 2.17 times",), 4
        ),
        Kind("alike", alike, ("No difference found; all within ±5 %", "4 undecided"), 4),
        Kind("strata", strata, ("4 comparisons: ", "The largest difference: c, n="), 3),
        Kind("what varies", varied, ("nothing was compared",), 2),
        Kind(
            "fleet",
            fleet,
            ("Over the 3 asked hosts: b is slower than a",),
            1,
        ),
        Kind("import", imported, ("imported trials prove nothing for certain",), 2),
    )


COMPRESSORS = ("gzip -1", "zstd -1", "lz4", "bzip2 -1", "xz -1", "gzip -9")


def six(text: str = "") -> ReportInput:
    """Six candidates of which two may be the fastest."""
    names = tuple(f"{name}{text}" for name in COMPRESSORS)
    medians = (0.05, 0.0227, 0.0229, 0.12, 0.2, 0.07)
    document = document_of(*names, blocks=40, medians=medians)
    gzip, zstd, lz4, *slow = names
    ranked = (
        RankedCondition(zstd, 0.454, (), (gzip, *slow), (), (lz4,)),
        RankedCondition(lz4, 0.458, (), (gzip, *slow), (), (zstd,)),
        *(RankedCondition(name, 1.0, (zstd, lz4), (), (), ()) for name in (gzip, *slow)),
    )
    summary = (
        f"{zstd} or {lz4} is the fastest of 6; {zstd} leads so far: 2.17 times as fast as {gzip}."
    )
    ranking = Ranking(gzip, (zstd, lz4), zstd, ranked, (), 0.05, summary)
    return reported(replace(document, ranking=(ranking,)))


def strata(text: str = "") -> ReportInput:
    """Three candidates at two values of a parameter, each with a ranking."""
    levels = [{"command": f"{name}{text}", "n": f"{n}{text}"} for n in "12" for name in "abc"]
    names = [f"{level['command']}, n={level['n']}" for level in levels]
    document = document_of(*names, blocks=40, medians=(0.05, 0.0526, 0.06))
    conditions = tuple(
        replace(one, levels=its) for one, its in zip(document.conditions, levels, strict=True)
    )
    comparisons: list[Comparison] = []
    rankings: list[Ranking] = []
    for a, b, c in (names[:3], names[3:]):
        stratum = {"n": a.partition("=")[2]}
        for name, ratio in ((b, 1.052), (c, 1.2)):
            comparisons.append(replace(comparison_of(a, name, ratio), stratum=stratum))
        ranked = (
            RankedCondition(a, 1.0, (), (b, c), (), ()),
            RankedCondition(b, 1.052, (a,), (c,), (), ()),
            RankedCondition(c, 1.2, (a, b), (), (), ()),
        )
        rankings.append(Ranking(a, (a,), a, ranked, (), 0.05, f"{a} is the fastest of 3.", stratum))
    return reported(
        replace(
            document,
            conditions=conditions,
            comparisons=tuple(comparisons),
            ranking=tuple(rankings),
        )
    )


def varied(text: str = "") -> ReportInput:
    """One command whose sources of chance are held."""
    document = document_of(
        f"nothing held{text}", f"CPU held{text}", f"everything held{text}", blocks=40
    )
    held: tuple[tuple[str, Status, str], ...] = (
        ("CPU", "source", "CPU spreads the times: with it held, ±10 % instead of ±20 %"),
        ("everything", "remainder", "with everything held, the times are within ±10 %"),
    )
    sources = tuple(
        Explanation(
            cause=f"{name}{text}",
            kind="chance",
            evidence={"spread": 0.2, "spread_held": 0.1, "p_value": 0.01, "blocks": 40},
            status=status,
            share_of_gap=0.75,
            share_ci=(0.5, 0.9),
            summary=summary + text,
        )
        for name, status, summary in held
    )
    run = replace(document.run, study="what-varies")
    return ReportInput(replace(document, run=run, comparisons=(), why=sources))


def alike(text: str = "") -> ReportInput:
    """A study that found no difference."""
    names = tuple(f"{name}{text}" for name in "abcde")
    document = document_of(*names, blocks=40, medians=(0.05,))
    comparisons = tuple(
        comparison_of(names[0], name, 1.001, ratio_ci=(0.9524, 1.04), verdict="undecided")
        for name in names[1:]
    )
    return reported(replace(document, comparisons=comparisons))


def compared(text: str = "") -> ReportInput:
    """Two commands."""
    return reported(document_of(f"a{text}", f"b{text}"))


def reported(document: ResultDocument) -> ReportInput:
    """With a course of every ratio."""
    courses = {
        comparison.candidate: points_of(comparison.ratio or 1.0)
        for comparison in document.comparisons
    }
    return ReportInput(document, courses)


def alone(text: str = "") -> ReportInput:
    """One command, which is compared with nothing."""
    document = document_of(f"a{text}", blocks=30)
    (condition,) = document.conditions
    summary = condition.metrics["wall_s"]
    value = TypicalValue(
        condition=condition.name,
        metric="wall_s",
        median=summary.median,
        median_ci=summary.median_ci,
        significance_level=0.05,
        trials=condition.trials,
        scope=SCOPE_OF_TYPICAL,
        summary="",
    )
    value = replace(value, summary=typical_sentence(value))
    return ReportInput(replace(document, typical=value))


def many(text: str = "") -> ReportInput:
    """Eight candidates."""
    return ReportInput(document_of(*(f"{name}{text}" for name in "abcdefghi"), blocks=9))


def sekhon2006(text: str = "") -> ReportInput:
    """A built-in study with its findings and figures."""
    factors = {
        "algorithm": ("scythe", "blas"),
        "allocator": ("glibc", "glibc_15k", "dlmalloc"),
        "rows": ("445", "890"),
    }

    def values(levels: dict[str, str]) -> dict[str, float]:
        seconds = 1e-6 * float(levels["rows"]) ** 2 * (2 if levels["algorithm"] == "scythe" else 1)
        seconds *= 2.4 if levels["allocator"] == "glibc_15k" else 1.0
        return {"search_s": seconds, "best_search_s": 0.9 * seconds}

    campaign = study_document("sekhon2006", factors, values, blocks=8, iterated=["search_s"])
    medians = {
        condition.name: condition.metrics["search_s"].median for condition in campaign.conditions
    }
    comparisons = tuple(
        comparison_of(
            baseline,
            condition.name,
            medians[condition.name] / medians[baseline],
            metric="search_s",
            words=f"{condition.name}{text} against {baseline}.",
        )
        for condition in campaign.conditions
        if condition.levels["allocator"] != "glibc"
        for baseline in (f"{condition.levels['algorithm']} glibc {condition.levels['rows']}",)
    )
    document = with_findings(replace(campaign, comparisons=comparisons))
    assert document.findings is not None
    table, *others = document.findings.tables
    hostile = replace(table, title=table.title + text, notes=(*table.notes, text))
    findings = replace(document.findings, tables=(hostile, *others))
    analysis = analysis_of("sekhon2006")
    assert analysis is not None
    return ReportInput(
        replace(document, findings=findings), study_figures=tuple(analysis.figures(document))
    )


def primitives(text: str = "", *, fork: float = 1.0) -> ReportInput:
    """Reports of probes."""
    runner = ProbeRunner(
        plan_of_rows(),
        value=lambda name, block, usual: (
            usual * (fork if name == "fork" else 1.0) * math.exp(0.001 * (block % 5))
        ),
    )
    document = result_of(record_of(runner))
    environment = {**document.environment, "cpu_model": f"A processor {text}"}
    return ReportInput(replace(document, environment=environment))


def against_another(text: str = "") -> ReportInput:
    """Primitives next to those of an earlier run, of which one became dearer."""
    document, reference = primitives(text, fork=3.0).result, primitives(text).result
    comparison = compare_with_reference(reference, document, min_effect=5.0, alpha=0.05)
    return ReportInput(replace(document, against=comparison))


def explained(text: str = "") -> ReportInput:
    """A gap with a cause that an intervention confirmed."""
    document = document_of(f"a{text}", f"b{text}")
    extra = ExtraTime(
        baseline=f"a{text}",
        candidate=f"b{text}",
        slower=f"b{text}",
        gap_s=0.5,
        gap_s_ci=(0.4, 0.6),
        parts=(TimePart("system", 0.01, 0.5, 0.49, (0.4, 0.6), 0.98),),
        run_counts={"profile": (3, 3)},
        unseen={"waits": (f"not permitted {text}",)},
        summary="98 % of the extra time is system time",
    )
    cause = Explanation(
        cause="blocks_returned_at_free",
        kind="allocation",
        evidence={"syscall": "munmap"},
        status="confirmed",
        share_of_gap=0.97,
        share_ci=(0.94, 0.99),
        summary=f"blocks {text} go back to the kernel at every free. Nothing else does.",
        seconds=0.48,
        seconds_ci=(0.4, 0.5),
        tested=(CLOSED,),
    )
    document = replace(document, extra_time=extra, why=(cause,))
    return replace(reported(document), flame_graph=FLAMES)


def gated(text: str = "") -> ReportInput:
    """A gate that fails."""
    row = GateRow(
        *(f"bench{text}", "wall_s", 0.01, 0.011, 1.1, (1.05, 1.2), 0.05, 9, "slower", "words."),
        equivalence_ci=(1.05, 1.2),
        equivalence_level=0.05,
    )
    gate = GateResult(
        Revision(f"main{text}", "1" * 40),
        Revision("HEAD", "2" * 40),
        2.0,
        False,
        (row,),
        f"b is slower{text}.",
    )
    return reported(document_as(GateDocument, document_of(f"a{text}", f"b{text}"), gate=gate))


def bisected(text: str = "") -> ReportInput:
    """A search that named one commit."""
    return ReportInput(bisect_document(text))


def historied(text: str = "") -> ReportInput:
    """A history of three nights, with a series of another tool."""
    result = replace(history_result(text), imported_series=(series_of(text),))
    return ReportInput(history_document(text, result))


def fleet(text: str = "") -> ReportInput:
    """Two commands on three hosts that differ."""
    return ReportInput(result_of(fleet_of(THREE, text)))


def fleet_with_losses(text: str = "") -> ReportInput:
    """A fleet of which one host left, and of another one nothing has come."""
    first, second, third = THREE
    left = replace(second, stopped_because="interrupted", blocks=12)
    return ReportInput(result_of(fleet_of((first, left, replace(third, is_absent=True)), text)))


def fleet_of_one_host(text: str = "") -> ReportInput:
    """Three campaigns side by side on one host."""
    hosts = [ScriptedHost("ada", 0.05, identity=identity_of("ada")) for _ in THREE]
    return ReportInput(result_of(fleet_of(hosts, text)))


def fleet_of(hosts: Sequence[ScriptedHost], text: str) -> RunRecord:
    """Records of a fleet with a text in the names of its hosts, their facts and conditions."""
    named = [
        replace(
            host,
            name=f"{host.name}{text}",
            identity=host.identity or identity_of(host.name),
            environment={
                key: f"{value}{text}" if key == "cpu_model" else value
                for key, value in host.environment.items()
            },
        )
        for host in hosts
    ]
    return fleet_record(named, plan=plan_of(f"a{text}", f"b{text}"))


FLEETS = (fleet_with_losses, fleet_of_one_host)
"""Fleets that differ from the one among `kinds` in what is missing."""


def imported(text: str = "") -> ReportInput:
    """Trials of another tool."""
    document = document_of(f"a{text}", f"b{text}")
    comparison = SampleComparison(
        baseline=f"a{text}",
        candidate=f"b{text}",
        metric="wall_s",
        method="Welch",
        estimand="ratio of means",
        ratio=1.05,
        ratio_ci=(0.99, 1.1),
        unknown=None,
        significance_level=0.05,
        baseline_trials=60,
        candidate_trials=60,
        scope="these trials",
        summary=f"imported trials prove nothing for certain{text}.",
    )
    source = ImportSource("csv", f"a tool {text}", (f"rows{text}.csv",), "one after the other")
    result = ImportedResult(source, "wall_s", (comparison,), f"drift is a threat {text}")
    return ReportInput(document_as(ImportedDocument, document, comparisons=(), imported=result))
