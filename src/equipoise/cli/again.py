"""The command line that a plan came from: what runs the same campaign again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from equipoise.design.probe_rows import ALPHA, MIN_EFFECT, QUICK, TIMEOUT_S
from equipoise.model.plan import Condition, Hooks, Judgement, Layout, Measure, Plan, Stopping
from equipoise.report.shell_line import (
    after_options,
    shell_line,
    shell_line_with_placeholders,
)


def again_of(plan: Plan) -> str:
    """The shell line that makes this plan again, coin and working folder included.

    A plan without hidden values makes a line for whoever has the variables: the shell puts them
    in place of ``$NAME``.
    """
    words = ["equipoise", "compare", *_options(plan)]
    commands = [shlex.join(condition.command) for condition in _asked(plan)]
    folder = shell_line([plan.measure.working_folder])
    return f"cd {folder} && {shell_line_with_placeholders([*words, *after_options(commands)])}"


def os_again_of(plan: Plan) -> str:
    """The shell line that runs the same rows of ``equipoise os`` again."""
    names = ",".join(condition.name for condition in plan.conditions)
    words = ["equipoise", "os", "--only", names, "--seed", str(plan.seed)]
    if any(QUICK.batching.options == one.command[-4:] for one in plan.conditions):
        words.append("--quick")
    words += ["--blocks", str(plan.stopping.blocks), "--budget", _plain(plan.stopping.budget_s)]
    words += ["--min-blocks", str(plan.stopping.min_blocks)]
    for option, value, usual in (
        ("--warmup", plan.measure.warmup, Measure(plan.measure.working_folder).warmup),
        ("--timeout", plan.measure.timeout_s, TIMEOUT_S),
        ("--alpha", plan.judgement.alpha, ALPHA),
        ("--min-effect", plan.judgement.min_effect, MIN_EFFECT),
    ):
        if value != usual:
            words += [option, _plain(value)]
    return shell_line(words)


def why_again_of(plan: Plan) -> str:
    """The shell line that tests the same gap again, with what the user asked to be tried.

    Beside that, what is tried follows from what will be observed then.
    """
    assert plan.explains is not None
    baseline, candidate = plan.conditions[:2]
    words = ["equipoise", "why", plan.explains.run, "--again", "--seed", str(plan.seed)]
    words += ["--baseline", baseline.name, "--candidate", candidate.name]
    for one in plan.explains.attempts:
        words += one.asked_by or ()
    words += _stopping(plan.stopping)
    words += ["--budget", _plain(plan.stopping.budget_s)]
    words += ["--alpha", _plain(plan.judgement.alpha)]
    return shell_line_with_placeholders(words)


def _options(plan: Plan) -> Iterator[str]:
    yield from ("--seed", str(plan.seed))
    asked = _asked(plan)
    if any(one.name != shlex.join(one.command) for one in asked):
        for condition in asked:
            yield from ("-n", condition.name)
    for position, condition in enumerate(asked, start=1):
        for key, value in condition.environment.items():
            yield from ("--env", f"{position}:{key}={value}")
    yield from _hooks([condition.hooks for condition in asked])
    yield from _measuring(plan.measure)
    yield from _layouts(plan.layouts)
    yield from _stopping(plan.stopping)
    if plan.stopping.budget_s != Stopping().budget_s:
        yield from ("--budget", _plain(plan.stopping.budget_s))
    usual = Judgement()
    if plan.judgement.alpha != usual.alpha:
        yield from ("--alpha", _plain(plan.judgement.alpha))
    if plan.judgement.min_effect != usual.min_effect:
        yield from ("--min-effect", _plain(plan.judgement.min_effect))
    metrics = (plan.judgement.primary_metric, *plan.judgement.other_metrics)
    if metrics != (usual.primary_metric,):
        yield from ("--metrics", ",".join(metrics))
    if plan.control is not None:
        yield "--control"


def _asked(plan: Plan) -> list[Condition]:
    """The conditions without the control, which is made of the baseline."""
    return [one for place, one in enumerate(plan.conditions) if place != plan.control]


def _hooks(hooks: list[Hooks]) -> Iterator[str]:
    for option in ("setup", "prepare", "conclude", "cleanup"):
        lines = [line for line in (getattr(one, option) for one in hooks) if line is not None]
        for line in lines[:1] if len(set(lines)) == 1 else lines:
            yield from (f"--{option}", line)


def _measuring(measure: Measure) -> Iterator[str]:
    usual = Measure(measure.working_folder)
    if measure.input is not None:
        yield from ("--input", measure.input)
    if measure.output.kind == "file":
        yield from ("--output", str(measure.output.path))
    elif measure.output.kind != usual.output.kind:
        yield from ("--output", measure.output.kind)
    if measure.timeout_s != usual.timeout_s:
        yield from ("--timeout", _plain(measure.timeout_s))
    if measure.warmup != usual.warmup:
        yield from ("--warmup", str(measure.warmup))
    if measure.washout:
        yield "--washout"
    if measure.ignore_failure:
        yield "--ignore-failure"


def _layouts(layouts: tuple[Layout, ...]) -> Iterator[str]:
    """What the coin draws once more; addresses that are alike in all may have been asked for."""
    if not layouts:
        return
    yield from ("--layouts", str(len(layouts)))
    random = {one.random_addresses for one in layouts}
    yield from ("--aslr", "drawn" if len(random) > 1 else "on" if random == {True} else "off")


def _stopping(stopping: Stopping) -> Iterator[str]:
    """All but the budget, of which the usual one depends on the command."""
    usual = Stopping()
    if stopping.blocks != usual.blocks:
        yield from ("--blocks", str(stopping.blocks))
    if stopping.min_blocks_explicit:
        yield from ("--min-blocks", str(stopping.min_blocks))
    if stopping.precision is not None:
        yield from ("--precision", _plain(stopping.precision))


def _plain(number: float) -> str:
    """All digits of a number, and no ``.0`` behind a whole one."""
    return repr(number).removesuffix(".0")
