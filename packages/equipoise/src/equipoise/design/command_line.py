"""The command that repeats a run: out of its plan, or out of its result document.

A line can be copied from a page or a screen and means the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from equipoise.design.limits import ONE_COMMAND
from equipoise.model.kinds import Terms, kind_of_study
from equipoise.model.plan import (
    COMPARE_STUDY,
    FEWEST_RANKED,
    Judgement,
    Measure,
    Output,
    Plan,
    Stopping,
)
from equipoise.model.redaction import quoted_but_for_placeholders
from equipoise.model.result import ResultDocument
from equipoise.shared.safe_text import visible


def command_of_plan(plan: Plan) -> str | None:
    """Return the line that runs a plan again; ``None`` where its result document knows better.

    A plan without hidden values makes a line for whoever has the variables: the shell puts them
    in place of ``$NAME``.
    """
    if plan.command_line:
        return shell_line_with_placeholders(plan.command_line)
    for rules in (plan.rules, plan.rules_of_study):
        if (own := rules.line_of(plan)) is not None:
            return own
    return _compare_line(plan) if plan.study == COMPARE_STUDY else None


def command_of_document(document: ResultDocument) -> str:
    """Return the command that runs a campaign again, as far as its document knows it."""
    if document.command_line is not None:
        return document.command_line
    rules = kind_of_study(document.run.study).part("rules", Terms)
    if (line := rules.line_with_seed(document.run.seed)) is not None:
        return line
    layouts = ["--layouts", str(len(document.run.layouts))] if document.run.layouts else []
    seed = ["--seed", str(document.run.seed), *layouts]
    if document.run.study != COMPARE_STUDY:
        return shell_line(["equipoise", "run", document.run.study, *seed])
    parts = ["equipoise", "compare", *seed]
    if document.comparisons:
        first = document.comparisons[0]
        parts += ["--min-effect", f"{first.min_effect:g}", "--alpha", f"{first.alpha:g}"]
    commands = [shlex.join(condition.command) for condition in document.conditions]
    if commands != [condition.name for condition in document.conditions]:
        for condition in document.conditions:
            parts += ["-n", condition.name]
    return shell_line_with_placeholders([*parts, *after_options(commands)])


def shell_line(words: Iterable[str]) -> str:
    """Return words quoted, so that a shell reads each of them as it stands.

    A word that has what no screen shows (the end of a line, an escape, a change of direction, bytes
    that are no text) is written as ``$'…'``, which bash, ksh and zsh read (POSIX.1-2024, §2.2.4);
    all others are for any shell.
    """
    return " ".join(map(_quoted, words))


def shell_line_with_placeholders(words: Iterable[str]) -> str:
    """Return words quoted likewise, but a shell expands the placeholders of hidden values.

    ``2:TOKEN=$TOKEN`` becomes ``"2:TOKEN=$TOKEN"``.
    """
    return " ".join(quoted_but_for_placeholders(word, _quoted) for word in words)


def after_options(words: Sequence[str]) -> list[str]:
    """Return words to stand behind options; ``--`` keeps a word from being read as an option."""
    return ["--", *words] if any(word.startswith("-") for word in words) else list(words)


def _compare_line(plan: Plan) -> str:
    """Return the line that makes a plan of ``compare`` again, coin and working folder included."""
    words = ["equipoise", "compare", *plan.rules.options, *_options(plan)]
    commands = [shlex.join(plan.conditions[place].command) for place in plan.described]
    folder = shell_line([plan.measure.working_folder])
    return f"cd {folder} && {shell_line_with_placeholders([*words, *after_options(commands)])}"


def _options(plan: Plan) -> Iterator[str]:
    yield from ("--seed", str(plan.seed))
    conditions = [plan.conditions[place] for place in plan.described]
    if any(condition.name != shlex.join(condition.command) for condition in conditions):
        for condition in conditions:
            yield from ("-n", condition.name)
    for position, condition in enumerate(conditions, start=1):
        for key, value in condition.environment.items():
            yield from ("--env", f"{position}:{key}={value}")
    for option in ("setup", "prepare", "conclude", "cleanup"):
        lines = [getattr(condition.hooks, option) for condition in conditions]
        lines = [line for line in lines if line is not None]
        for line in lines[:1] if len(set(lines)) == 1 else lines:
            yield from (f"--{option}", line)
    yield from _measuring(plan.measure)
    for condition in conditions:
        if condition.output is not None:
            yield from ("--output", _output_kind(condition.output))
    if plan.layouts:
        # The coin draws the layouts again; only their addresses may be chosen.
        random = {layout.random_addresses for layout in plan.layouts}
        yield from ("--layouts", str(len(plan.layouts)))
        yield from ("--aslr", "drawn" if len(random) > 1 else "on" if random == {True} else "off")
    yield from stopping_options(plan.stopping)
    judgement, usual = plan.judgement, Judgement()
    metrics = (judgement.primary_metric, *judgement.other_metrics)
    yield from changed_options(
        ("--budget", plan.stopping.budget_s, _usual_budget(plan)),
        ("--alpha", judgement.alpha, usual.alpha),
        ("--min-effect", judgement.min_effect, usual.min_effect),
        ("--metrics", ",".join(metrics), usual.primary_metric),
    )
    for contrast in plan.chosen_contrasts or ():
        yield from ("--pair", f"{contrast.baseline + 1}:{contrast.candidate + 1}")
    if plan.control is not None:
        yield "--control"
    if plan.adjust_by:
        yield "--adjust"
    if not plan.ranking and len(conditions) >= FEWEST_RANKED:
        yield from ("--ranking", "off")


def _usual_budget(plan: Plan) -> float | None:
    """Return the budget that needs no option; ``None`` for one command with any budget given."""
    if not plan.describes_one:
        return Stopping().budget_s
    return ONE_COMMAND.budget_s if plan.stopping.blocks_before_budget else None


def _measuring(measure: Measure) -> Iterator[str]:
    usual = Measure(measure.working_folder)
    yield from changed_options(
        ("--input", measure.input, None),
        ("--output", _output_kind(measure.output), _output_kind(usual.output)),
        ("--timeout", measure.timeout_s, usual.timeout_s),
        ("--warmup", measure.warmup, usual.warmup),
    )
    if measure.washout:
        yield "--washout"
    if measure.ignored_exits:
        yield f"--ignore-failure={','.join(map(str, measure.ignored_exits))}"
    elif measure.ignore_failure:
        yield "--ignore-failure"


def _output_kind(output: Output) -> str:
    """Return where standard output goes, as ``--output`` has it."""
    if output.kind == "file":
        return str(output.path)
    return "null" if output.kind == "discard" else output.kind


def stopping_options(stopping: Stopping) -> Iterator[str]:
    """Yield all but the budget, whose default depends on the command."""
    if stopping.patient:
        yield "--patient"
    min_blocks = stopping.min_blocks if stopping.min_blocks_explicit else None
    yield from changed_options(
        ("--blocks", stopping.blocks, None),
        ("--min-blocks", min_blocks, None),
        ("--min-seconds", stopping.min_seconds, Stopping().min_seconds),
        ("--precision", stopping.precision, None),
        ("--tail", stopping.tail, None),
    )


def changed_options(*rows: tuple[str, float | str | None, float | str | None]) -> Iterator[str]:
    """Yield each option whose value is not the usual one, and the value."""
    for option, value, usual in rows:
        if value is not None and value != usual:
            yield from (option, value if isinstance(value, str) else plain_number(value))


def plain_number(number: float) -> str:
    """Return all digits of a number, and no ``.0`` behind a whole one."""
    return repr(number).removesuffix(".0")


def _quoted(word: str) -> str:
    if visible(word) == word:
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if visible(character) == character:
        return character
    try:
        encoded = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Out of a document: no command line can hold it.
        encoded = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in encoded)
