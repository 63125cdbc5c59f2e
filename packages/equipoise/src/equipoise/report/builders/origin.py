"""Builds the origin of a result: the question, the command, the time and the machine."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from equipoise.design.chance import WHAT_VARIES_STUDY
from equipoise.figures.quantity import metric_name
from equipoise.model.plan import CALL_METRIC, COMPARE_STUDY, PRIMARY_METRIC
from equipoise.model.result import ResultDocument
from equipoise.report.document import Origin
from equipoise.report.kind import kind_report

_MAX_NAME_LETTERS = 32
"""Maximum length of a name in a question; general words replace a longer name."""


def origin_of(result: ResultDocument, command: str) -> Origin:
    """Return the origin of a result; ``command`` is the command line that runs it again."""
    first_command, _, last_command = command.partition(" && ")
    if first_command.startswith("cd ") and last_command:
        command = last_command
    kind = kind_report(result)
    return Origin(
        question=kind.question(result) or _question(result),
        command=command,
        when=f"{kind.verb} {minute_of(result.run.started)}",
        machine=kind.machine(result) or machine_of(result.environment),
    )


def machine_of(environment: Mapping[str, Any]) -> str:
    """Return the processor, the number of CPUs and the system of a host, as one text."""
    facts = [str(environment.get("cpu_model") or "unknown processor")]
    if cpus := environment.get("cpus"):
        facts.append(f"{cpus} CPU{'' if cpus == 1 else 's'}")
    if kernel := environment.get("kernel"):
        facts.append(f"{environment.get('system') or 'Linux'} {kernel}")
    return ", ".join(facts)


def minute_of(time: str) -> str:
    """Return an ISO 8601 time as ``2026-03-01 10:15 UTC``; return any other text unchanged."""
    try:
        parsed = datetime.fromisoformat(time)
    except ValueError:
        return time
    return f"{parsed.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _question(result: ResultDocument) -> str:
    conditions, metric = result.conditions, result.primary_metric
    if result.against is not None:
        return "What changed since another result?"
    names = [_short_name(condition.name) for condition in conditions]
    if result.typical is not None:
        return (
            f"How long does {names[0] or 'it'} take?"
            if metric == PRIMARY_METRIC
            else (f"What is the {metric_name(metric)} of {names[0] or 'it'}?")
        )
    if result.run.study == WHAT_VARIES_STUDY:
        name = _short_name(shlex.join(conditions[0].command)) or "one command"
        return f"What makes the time of {name} vary?"
    if result.run.study != COMPARE_STUDY and not result.shares_processes:
        return f"Study {result.run.study}: {len(conditions)} conditions, {metric_name(metric)}"
    comparisons = result.primary_comparisons
    stratum = comparisons[0].stratum if comparisons else {}
    if not stratum:
        return f"{_comparison_question(names, metric)}?"
    compared_names = [comparisons[0].baseline]
    compared_names += [row.candidate for row in comparisons if row.stratum == stratum]
    commands = {condition.name: condition.levels.get("command", "") for condition in conditions}
    command_names = [_short_name(commands[condition]) for condition in compared_names]
    return f"{_comparison_question(command_names, metric)}, at each {' and '.join(stratum)}?"


def _short_name(name: str) -> str:
    """Return a name, or an empty text if the name is too long for a question."""
    return name if len(name) <= _MAX_NAME_LETTERS else ""


def _comparison_question(names: Sequence[str], metric: str) -> str:
    """Return a question without its question mark; general words replace empty names."""
    is_time = metric in (PRIMARY_METRIC, CALL_METRIC)
    if len(names) != 2:
        best = "the fastest" if is_time else f"the best by {metric_name(metric)}"
        return f"Which of {len(names)} is {best}"
    baseline, candidate = names if all(names) else ("the first", "the second")
    if is_time:
        return f"Is {candidate} faster or slower than {baseline}"
    return f"Does the {metric_name(metric)} of {candidate} differ from that of {baseline}"
