"""The Python interface: `compare`, `compare_code`, `run`, `show` and their `Result`."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import asdict, replace

from equipoise.analysis.display import records_for_display
from equipoise.campaign import conduct
from equipoise.campaign.plans import FunctionsRequest, compare_plan, study_plan
from equipoise.campaign.progress import ProgressListener
from equipoise.design.coin import Addresses
from equipoise.design.command_line import command_line_of
from equipoise.design.commands import CompareOptions
from equipoise.design.limits import CampaignLimits
from equipoise.files.state import default_ledger
from equipoise.ledger import Ledger, open_for_reading, open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import load_part
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.quantities import Interval
from equipoise.model.record import RunRecord
from equipoise.model.result import Comparison, ResultDocument, Verdict
from equipoise.shared.extras import Library, frame_of
from equipoise.shared.keywords import accepts_keywords
from equipoise.shared.pictures import MimeBundle, require_figures
from equipoise.studies.catalogue import with_findings
from equipoise.studies.preparation import StudyOptions, prepare_study
from equipoise.why.result import result_of, with_experiment

if TYPE_CHECKING:
    import altair
    import pandas
    import polars


class Limits(TypedDict, total=False):
    """Numbers that limit and judge a campaign; ``None`` is the study's value or the default."""

    alpha: float | None
    """Largest chance of a wrong verdict; by default 0.05."""
    min_effect: float | None
    """Smallest effect that matters, in percent; by default 1."""
    blocks: int | None
    """Maximum number of blocks; by default the budget alone is the limit."""
    min_blocks: int | None
    """Minimum blocks before a verdict, even beyond the budget; by default 5, within the budget."""
    min_seconds: float | None
    """Minimum seconds of measured blocks before a verdict; by default 1."""
    budget: float | None
    """Maximum seconds of the campaign; by default 60, or 10 for one command."""
    patient: bool | None
    """Whether to exceed the budget by less than half if a verdict is probably near."""
    precision: float | None
    """Measure until the interval is at most this wide, in percent."""
    tail: float | None
    """Measure until slow runs would have appeared, if at least this percentage of runs is slow."""
    warmup: int | None
    """Number of trials of each condition before the first block, never analysed; by default 1."""
    timeout: float | None
    """Maximum seconds of a trial; a longer trial is ended and counts as slowest; by default 600."""
    seed: int | None
    """Seed of the random orders; by default drawn and recorded."""


OnOrOff = Literal["on", "off"]
_IF_NO_FUNCTIONS = {
    "purpose": "that compare Python functions",
    "alternative": "compare programs: eq.compare('a', 'b')",
}
"""Words of the error if this installation cannot compare Python functions."""


class Result(Struct, frozen=True):
    """Result of a campaign.

    ``verdict``, ``ratio`` and ``interval`` describe the first candidate. ``document`` has
    everything, like the file of ``--json``.

    Examples
    --------
    >>> import equipoise as eq
    >>> result = eq.compare("true", "sleep 0.05", blocks=8, min_seconds=0)
    >>> result.verdict
    'slower'
    >>> result.ratio > 1
    True
    >>> sorted(set(result.to_frame()["condition"]))
    ['sleep 0.05', 'true']
    """

    document: ResultDocument

    @property
    def comparison(self) -> Comparison:
        """Comparison of the first candidate with the baseline, on the primary metric.

        Raise `UnusableInput` if nothing was compared.
        """
        if not self.document.comparisons:
            raise UnusableInput(
                "nothing was compared, so there is no verdict",
                hint="give two commands, or read result.document.typical for a single command",
            )
        return self.document.comparisons[0]

    @property
    def verdict(self) -> Verdict:
        """Verdict: ``faster``, ``slower``, ``equivalent``, ``mixed`` or ``undecided``."""
        return self.comparison.verdict

    @property
    def ratio(self) -> float | None:
        """Cost of the candidate divided by the cost of the baseline: 0.5 is twice as fast."""
        return self.comparison.ratio

    @property
    def interval(self) -> Interval:
        """Interval of ``ratio`` at the stop, from a confidence sequence."""
        return self.comparison.ratio_ci

    def to_frame(self, library: Library = "pandas") -> pandas.DataFrame | polars.DataFrame:
        """Return the trials as a data frame, one row for each trial.

        Raise `UnusableInput` if ``library`` is not installed, or neither pandas nor polars.
        """
        return frame_of([asdict(row) for row in self.document.trials], library)

    def plot(self) -> altair.LayerChart:
        """Return the main chart: distributions of the trials, the bisection, or the history.

        For several bisected benchmarks, the chart shows the search for the first benchmark.

        Raise `UnusableInput` if altair or vl-convert is not installed.
        """
        require_figures()
        from equipoise.figures.gallery import figures_of

        chart = figures_of(self.document).chart(self.document)
        if chart is not None:
            return chart
        from equipoise.figures.distributions import distributions

        return distributions(self.document)

    def _repr_mimebundle_(self, *_: object, **__: object) -> MimeBundle:
        """Return contents for a notebook: HTML with a chart, and the chart as SVG and PNG."""
        from equipoise.report.builders.result import ReportInput, campaign_document
        from equipoise.report.renderers.notebook import with_picture

        return with_picture(campaign_document(ReportInput(self.document)), self.plot)

    def _repr_html_(self) -> str:
        return str(self._repr_mimebundle_()[0]["text/html"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        """Return the rankings, then a sentence and an interval for each comparison.

        Other results, such as a bisection, have one summary.
        """
        if self.document.kind_summary is not None:
            return self.document.kind_summary
        if self.document.typical is not None:
            return self.document.typical.summary
        rankings = (ranking.summary for ranking in self.document.ranking)
        comparisons = map(self._with_interval, self.document.comparisons)
        return "\n".join((*rankings, *comparisons))

    def _with_interval(self, comparison: Comparison) -> str:
        """Return the sentence of a comparison, and its interval (if known) on the next line."""
        from equipoise.report.builders.conditions import shown_comparison
        from equipoise.report.units import interval_text, with_coverage

        if comparison.ratio_ci == (None, None):
            return comparison.summary
        ends = interval_text(shown_comparison(self.document, comparison).ratio_ci)
        interval = with_coverage(ends, comparison.significance_level, comparison.alpha)
        return f"{comparison.summary}\n  {interval}"


@accepts_keywords(Limits, CampaignLimits())
def compare(
    *commands: str | Sequence[str] | Callable[..., object],
    setup: Callable[[], object] | None = None,
    names: Sequence[str] = (),
    environments: Mapping[int, Mapping[str, str]] | None = None,
    washout: bool = False,
    duet: bool = False,
    control: bool = False,
    adjust: bool = False,
    ranking: bool | OnOrOff | None = None,
    metrics: Sequence[str] = (PRIMARY_METRIC,),
    ignore_failure: bool = False,
    layouts: int | None = None,
    aslr: Addresses | None = None,
    ledger: Path | str | None = None,
    allow_concurrent: bool = False,
    show_env: bool = False,
    progress: ProgressListener | None = None,
    **limits: Unpack[Limits],
) -> Result:
    """Compare commands or Python functions with the first command or function, the baseline.

    A single command or function is described. Each fresh process runs all functions once, so it
    gives one trial of each function (docs/how-to/compare-functions.md). Functions accept only
    ``setup``, ``names``, ``ranking``, the limits and the ledger.

    Raise `UnusableInput` if no campaign is possible; nothing was measured then.
    Raise `ConditionFailed` if a command failed. Raise `KeyboardInterrupt` if the user interrupted
    the campaign; every finished trial is in the ledger.

    Examples
    --------
    >>> import equipoise as eq
    >>> result = eq.compare("sleep 0.05", ["true"], blocks=8, min_seconds=0)
    >>> result.verdict
    'faster'

    Parameters
    ----------
    commands
        A command is a sequence of arguments, or a string that is split as a POSIX shell splits it;
        no shell runs the command. A function is called with the value of ``setup``, or without an
        argument. An ``async`` function is awaited.
    setup
        Function that makes the argument of the functions, untimed. It runs once in each process,
        or before each call if a function changes its argument.
    environments
        Environment variables for some commands, by the position of the command, from 1.
    duet
        Run the two trials of a block at once, each on CPUs of its own that the coin assigns
        (docs/how-to/run-both-at-once.md).
    control
        Run the baseline a second time, to check the tool.
    adjust
        Adjust two commands by values that are read before each trial, such as the load. This
        assumes that both commands leave the host in the same state.
    ranking
        Whether to rank the commands: True, ``"on"``, False or ``"off"``. By default, up to 20
        commands without layouts are ranked.
    metrics
        Metrics to compare; the first one decides when to stop.
    layouts
        Number of memory layouts; ``{layout}`` in a command becomes the number of the layout.
    aslr
        Whether the kernel draws random addresses: ``on``, ``off``, or ``drawn`` for each layout.
    ledger
        Path of the ledger for the campaign; by default ``$EQUIPOISE_LEDGER``, or
        ``.equipoise/ledger.db``.
    allow_concurrent
        Measure even if another campaign runs on this host, instead of waiting for its end.
    show_env
        Show the values of all environment variables; by default only of known tuning variables.
    progress
        Listener that receives an event for each trial and block.
    limits
        Numbers that limit and judge the campaign (`Limits`).
    """
    is_ranked, all_limits = _parse_ranking(ranking), CampaignLimits(**limits)
    if setup is not None or any(map(callable, commands)):
        # Functions accept none of these options.
        options_of_commands: dict[str, object] = {
            "environments": environments,
            "washout": washout,
            "duet": duet,
            "control": control,
            "adjust": adjust,
            "metrics": tuple(metrics) != (PRIMARY_METRIC,),
            "ignore_failure": ignore_failure,
            "layouts": layouts,
            "aslr": aslr,
        }
        request = FunctionsRequest(all_limits, names, is_ranked, ledger, allow_concurrent, progress)
        compare_functions = load_part("compare_callables", **_IF_NO_FUNCTIONS)
        record = compare_functions(commands, setup, request, options_of_commands)
        return _result_of(record, show_env=show_env)
    options = CompareOptions(
        commands=_checked_commands([command for command in commands if not callable(command)]),
        names=tuple(names),
        environments=tuple(
            f"{position}:{key}={value}"
            for position, variables in (environments or {}).items()
            for key, value in variables.items()
        ),
        metrics=metrics,
        ignore_failure=ignore_failure,
        washout=washout,
        duet=duet,
        control=control,
        adjust=adjust,
        layouts=layouts,
        aslr=aslr,
        ranking=is_ranked,
        limits=all_limits,
    )
    plan, warnings = compare_plan(options)
    plan = replace(plan, command_line=_comparison_command_line(options, plan.seed))
    with _open_measurement(ledger, allow_concurrent=allow_concurrent) as store:
        run_id = conduct.start(plan, store, progress or ProgressListener(), warnings=warnings)
        record = store.read_run(run_id)
    return _result_of(record, show_env=show_env)


@accepts_keywords(Limits, CampaignLimits())
def run(
    study: Path | str,
    *,
    quick: bool = False,
    factors: Mapping[str, object] | None = None,
    command: str | None = None,
    ranking: bool | OnOrOff | None = None,
    layouts: int | None = None,
    aslr: Addresses | None = None,
    ledger: Path | str | None = None,
    allow_concurrent: bool = False,
    show_env: bool = False,
    progress: ProgressListener | None = None,
    **limits: Unpack[Limits],
) -> Result:
    """Run a study: a workload under every combination of its factors' levels.

    Raise `UnusableInput` if there is no such study, factor or level, or no part of it can run here.
    Raise `ConditionFailed` if a command failed. Raise `KeyboardInterrupt` if the user interrupted
    the campaign; every finished trial is in the ledger.

    Examples
    --------
    >>> import equipoise as eq
    >>> from pathlib import Path
    >>> study = '''
    ... [study]
    ... name = "naps"
    ... [workload]
    ... command = ["sleep", "{seconds}"]
    ... [factors.seconds]
    ... levels = [0.001, 0.05]
    ... '''
    >>> _ = Path("naps.toml").write_text(study)
    >>> eq.run("naps.toml", blocks=8, min_seconds=0).verdict
    'slower'

    Parameters
    ----------
    study
        Path of a TOML file, or the name of a built-in study (``equipoise list studies``).
    quick
        Whether to run the quick form of the study, which takes less time.
    factors
        Levels to run, a value or a list, by the name of the factor; other factors keep all levels.
    command
        Program to measure instead of the workload of the study.
    ranking, layouts, aslr, ledger, allow_concurrent, show_env, progress, limits
        As for ``compare``; ``None`` is the value of the study, or else the default.
    """
    is_ranked, all_limits = _parse_ranking(ranking), CampaignLimits(**limits)
    ledger_path = Path(ledger or default_ledger())
    factor_choices = [
        f"{name}={','.join(map(str, levels)) if isinstance(levels, list | tuple) else levels}"
        for name, levels in (factors or {}).items()
    ]
    options = StudyOptions(
        study=str(study),
        quick=quick,
        command=command,
        factors=factor_choices,
        layouts=layouts,
        aslr=aslr,
    )
    prepared_study = prepare_study(options, ledger_path)
    with _open_measurement(ledger_path, allow_concurrent=allow_concurrent) as store:
        builds = prepared_study.build(ledger_path) if prepared_study.build_lines else {}
        plan, plan_warnings = study_plan(
            prepared_study.study, prepared_study.grid(builds), all_limits, ranking=is_ranked
        )
        option_values = {
            "quick": quick,
            "factor": factor_choices,
            "command": command,
            **_common_options(layouts, aslr, is_ranked, all_limits, plan.seed),
        }
        plan = replace(plan, command_line=command_line_of("run", (str(study),), option_values))
        warnings = (*prepared_study.warnings, *plan_warnings)
        with prepared_study.errors_at_settings(plan):
            run_id = conduct.start(plan, store, progress or ProgressListener(), warnings=warnings)
        record = store.read_run(run_id)
    return _result_of(record, show_env=show_env)


@contextmanager
def _open_measurement(ledger: Path | str | None, *, allow_concurrent: bool) -> Iterator[Ledger]:
    with (
        conduct.measurement_lock(conduct.warn_of_wait, allow_concurrent=allow_concurrent),
        open_for_writing(Path(ledger or default_ledger()), durable=False) as store,
    ):
        try:
            yield store
        except conduct.Interrupted as interruption:
            raise KeyboardInterrupt(f"resume run {interruption.run_id}") from interruption


@accepts_keywords(Limits, CampaignLimits())
def compare_code(
    *codes: str,
    setup: str = "",
    globals: Mapping[str, object] | None = None,
    names: Sequence[str] = (),
    ranking: bool | OnOrOff | None = None,
    ledger: Path | str | None = None,
    allow_concurrent: bool = False,
    show_env: bool = False,
    progress: ProgressListener | None = None,
    **limits: Unpack[Limits],
) -> Result:
    """Compare pieces of Python code, as `compare` compares functions; the first is the baseline.

    A single piece is described.

    Raise `UnusableInput` if no campaign is possible; nothing was measured then. Raise
    `ConditionFailed` if a piece of code failed. Raise `KeyboardInterrupt` if the user interrupted
    the campaign; every finished trial is in the ledger.

    Examples
    --------
    >>> import equipoise as eq
    >>> result = eq.compare_code(
    ...     "sum(numbers)",
    ...     "sorted(numbers)[-1] + sum(sorted(numbers))",
    ...     setup="numbers = list(range(1000, 0, -1))",
    ...     names=["sum", "sort and sum"],
    ...     blocks=8,
    ...     min_seconds=0,
    ... )
    >>> result.verdict
    'slower'

    Parameters
    ----------
    codes
        Statements, as ``timeit`` takes them; they may ``await``.
    setup
        Statements that run first, untimed and separately for each piece. They run once in each
        process, or before each run if a piece changes its data.
    globals
        Names that the code may use, with their values, such as ``globals()``. The values of used
        names are sent to the fresh processes.
    """
    is_ranked, all_limits = _parse_ranking(ranking), CampaignLimits(**limits)
    request = FunctionsRequest(all_limits, names, is_ranked, ledger, allow_concurrent, progress)
    record = load_part("compare_code", **_IF_NO_FUNCTIONS)(codes, setup, globals or {}, request)
    return _result_of(record, show_env=show_env)


def _parse_ranking(ranking: bool | OnOrOff | None) -> bool | None:
    """Return whether a ranking is requested; ``None`` means the default."""
    choices = {None: None, True: True, False: False, "on": True, "off": False}
    if ranking not in choices:
        raise UnusableInput(
            f"{ranking!r} is not a value of ranking", hint="give True or 'on', or False or 'off'"
        )
    return choices[ranking]


def _comparison_command_line(options: CompareOptions, seed: int) -> tuple[str, ...]:
    commands = [
        command if isinstance(command, str) else shlex.join(command) for command in options.commands
    ]
    metrics = tuple(options.metrics)
    option_values = {
        "command-name": options.names,
        "env": options.environments,
        "metrics": None if metrics == (PRIMARY_METRIC,) else ",".join(metrics),
        "ignore-failure": options.ignore_failure,
        "washout": options.washout,
        "duet": options.duet,
        "control": options.control,
        "adjust": options.adjust,
        **_common_options(options.layouts, options.aslr, options.ranking, options.limits, seed),
    }
    return command_line_of("compare", commands, option_values)


def _common_options(
    layouts: int | None,
    aslr: Addresses | None,
    ranking: bool | None,
    limits: CampaignLimits,
    seed: int,
) -> dict[str, object]:
    on_or_off = None if ranking is None else "on" if ranking else "off"
    return {"layouts": layouts, "aslr": aslr, "ranking": on_or_off, **asdict(limits), "seed": seed}


def _checked_commands(commands: Sequence[str | Sequence[str]]) -> tuple[str | tuple[str, ...], ...]:
    """Return commands as strings or tuples; raise `UnusableInput` for a list of commands."""
    checked_commands = tuple(
        command if isinstance(command, str) else tuple(command) for command in commands
    )
    for command in checked_commands:
        if not isinstance(command, str) and _are_commands(
            command, is_only=len(checked_commands) == 1
        ):
            raise UnusableInput(
                f"{[*command]} looks like several commands, but a list is one command",
                hint="give each command separately: equipoise.compare(*commands)",
            )
    return checked_commands


def _are_commands(arguments: tuple[object, ...], *, is_only: bool) -> bool:
    """Return whether the arguments of a command look like several commands.

    If the command ``is_only`` (nothing else is compared), each argument may be a program.
    """
    texts = [argument for argument in arguments if isinstance(argument, str)]
    if len(texts) < len(arguments):
        return True
    # A text with a space is a command line, except if a file has this name.
    if texts and " " in texts[0].strip() and not Path(texts[0]).exists():
        return True
    return is_only and len(texts) > 1 and all(map(shutil.which, texts))


def show(run: str = "last", *, ledger: Path | str | None = None, show_env: bool = False) -> Result:
    """Compute the result of a campaign again from the ledger.

    Raise `UnusableInput` if there is no such ledger or no such run.

    Examples
    --------
    >>> import equipoise as eq
    >>> measured = eq.compare("true", "sleep 0.05", blocks=8, min_seconds=0)
    >>> eq.show("last").interval == measured.interval
    True

    Parameters
    ----------
    show_env
        Show the values of all environment variables; by default only of known tuning variables.
    """
    with open_for_reading(Path(ledger or default_ledger())) as store:
        record = store.read_run(run)
        records = with_experiment(record, store)
    return _result_of(*records, show_env=show_env)


def _result_of(*records: RunRecord, show_env: bool) -> Result:
    """Return the result of a campaign; a second record is the experiment that tested its causes."""
    document = result_of(*records_for_display(records, show_env=show_env))
    return Result(with_findings(document))
