"""The Python interface: ``equipoise.compare`` and its result."""

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
from equipoise.shared.keywords import takes
from equipoise.shared.pictures import MimeBundle, require_figures
from equipoise.studies.catalogue import with_findings
from equipoise.studies.preparation import StudyOptions, prepare_study
from equipoise.why.result import result_of, with_experiment

if TYPE_CHECKING:
    import altair
    import pandas
    import polars


class Limits(TypedDict, total=False):
    """The numbers that limit and judge a campaign; ``None`` is the default, or the study's own."""

    alpha: float | None
    """The largest chance of a wrong verdict: by default 0.05."""
    min_effect: float | None
    """Smallest effect that matters, in percent: by default 1."""
    blocks: int | None
    """Maximum number of blocks; by default the budget alone is the limit."""
    min_blocks: int | None
    """Number of blocks before the first verdict, by default 5; a given one beats the budget."""
    min_seconds: float | None
    """Seconds of measured blocks before the first verdict, by default 1; 0 for none."""
    budget: float | None
    """Seconds: by default 60, or 10 for one command."""
    patient: bool | None
    """Exceed the budget, by less than half, where a forecast says that a verdict is near."""
    precision: float | None
    """Go on until the interval is at most so many percent wide."""
    tail: float | None
    """Go on until slow runs that come in this percentage of runs would have shown."""
    warmup: int | None
    """Trials of each condition before the first block, never analysed: by default 1."""
    timeout: float | None
    """Seconds after which a trial is ended, and counts as slowest: by default 600."""
    seed: int | None
    """Seed of the coin; drawn and recorded by default."""


OnOrOff = Literal["on", "off"]
_OF_FUNCTIONS = ("that compare Python functions", "compare programs: eq.compare('a', 'b')")
"""The campaigns that an installation without them lacks, and the hint."""


class Result(Struct, frozen=True):
    """Result of a campaign.

    ``verdict``, ``ratio`` and ``interval`` describe the first candidate; ``document`` holds
    everything, as the ``--json`` file does.

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
        """The first candidate against the baseline, on the primary metric.

        Raise `UnusableInput` if nothing was compared.
        """
        if not self.document.comparisons:
            raise UnusableInput(
                "nothing was compared, so there is no verdict",
                hint="give two commands; result.document.typical describes one",
            )
        return self.document.comparisons[0]

    @property
    def verdict(self) -> Verdict:
        """``faster``, ``slower``, ``equivalent``, ``mixed`` or ``undecided``."""
        return self.comparison.verdict

    @property
    def ratio(self) -> float | None:
        """Candidate over baseline of a cost: 0.5 is twice as fast."""
        return self.comparison.ratio

    @property
    def interval(self) -> Interval:
        """The confidence sequence of ``ratio`` where the campaign stopped."""
        return self.comparison.ratio_ci

    def to_frame(self, library: Library = "pandas") -> pandas.DataFrame | polars.DataFrame:
        """Return the trials as a data frame, a row for each.

        Raise `UnusableInput` if the library is another, or not installed.
        """
        return frame_of([asdict(row) for row in self.document.trials], library)

    def plot(self) -> altair.LayerChart:
        """Return a chart of the distributions with every trial, or of a bisection or a history.

        Of a bisection of several benchmarks it shows the search of the first one.

        Raise `UnusableInput` if altair or vl-convert is not installed.
        """
        require_figures()
        from equipoise.figures.gallery import figures_kind

        chart = figures_kind(self.document).chart(self.document)
        if chart is not None:
            return chart
        from equipoise.figures.distributions import distributions

        return distributions(self.document)

    def _repr_mimebundle_(self, *_: object, **__: object) -> MimeBundle:
        """Return the content for a notebook: HTML with a chart, and the chart as SVG and PNG."""
        from equipoise.report.builders.result import CampaignReport, campaign_document
        from equipoise.report.renderers.notebook import with_picture

        return with_picture(campaign_document(CampaignReport(self.document)), self.plot)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return str(self._repr_mimebundle_()[0]["text/html"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print what IPython shows on a terminal."""
        printer.text(str(self))

    def __str__(self) -> str:
        """Return a sentence for each comparison or search, or of a history or a condition.

        Each ranking comes before the comparisons. The interval of a comparison is below it.
        """
        if self.document.own_summary is not None:
            return self.document.own_summary
        if self.document.typical is not None:
            return self.document.typical.summary
        rankings = (ranking.summary for ranking in self.document.ranking)
        comparisons = map(self._with_interval, self.document.comparisons)
        return "\n".join((*rankings, *comparisons))

    def _with_interval(self, comparison: Comparison) -> str:
        """Return the sentence of a comparison, and its interval on a line of its own, if any."""
        from equipoise.report.builders.conditions import shown_comparison
        from equipoise.report.units import interval_text, with_coverage

        if comparison.ratio_ci == (None, None):
            return comparison.summary
        ends = interval_text(shown_comparison(self.document, comparison).ratio_ci)
        interval = with_coverage(ends, comparison.level, comparison.alpha)
        return f"{comparison.summary}\n  {interval}"


@takes(Limits, CampaignLimits())
def compare(
    *commands: str | Sequence[str] | Callable[..., object],
    setup: Callable[[], object] | None = None,
    names: Sequence[str] = (),
    environments: Mapping[int, Mapping[str, str]] | None = None,
    washout: bool = False,
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
    """Compare commands, or Python functions; the first is the baseline.

    One command or function alone is described. Functions run in fresh processes, each of which
    runs all of them and gives one trial of each (docs/how-to/compare-functions.md). Only
    ``setup``, ``names``, ``ranking``, the limits and the ledger are for functions too.

    Raise `UnusableInput` if the commands or the numbers make no campaign; nothing was measured.
    Raise `ConditionFailed` if a command failed. Raise `KeyboardInterrupt` if the user interrupted
    it; every finished trial is in the ledger.

    Examples
    --------
    >>> import equipoise as eq
    >>> result = eq.compare("sleep 0.05", ["true"], blocks=8, min_seconds=0)
    >>> result.verdict
    'faster'

    Parameters
    ----------
    commands
        Each a string, split as a POSIX shell splits words, or a sequence of words. No shell
        runs them. Or functions, which are called without an argument, or with what ``setup``
        returns; those that are ``async`` are awaited.
    setup
        Function that makes the argument of functions, untimed: once in each process, or before
        each call where a function changes its argument.
    environments
        Variables that are set for one condition, by its position from 1.
    control
        Run the baseline a second time, to check the tool.
    adjust
        Adjust two commands by load, pressure or another reading before each trial. It assumes that
        both leave the host alike for the trial after them.
    ranking
        Also ask which command is the fastest, not only how each compares with the baseline; by
        default, unless there are layouts or more than 20 commands. The words ``"on"`` and ``"off"``
        are taken, too.
    metrics
        Metrics to compare; the first decides, the others are judged too.
    layouts
        Number of memory layouts; ``{layout}`` in a command is the number of each.
    aslr
        Whether the kernel draws addresses in a layout: ``drawn`` by a coin, ``on`` or ``off``.
    ledger
        Ledger that keeps the campaign: by default ``$EQUIPOISE_LEDGER``, or
        ``.equipoise/ledger.db``.
    allow_concurrent
        Measure even if another campaign runs on this host, instead of waiting for its end.
    show_env
        Keep the values of all environment variables; by default those of known tuning variables.
    progress
        Listener that hears of every trial and block.
    limits
        Numbers that limit and judge the campaign, by the names of `Limits`.
    """
    asks_ranking, numbers = _ranking_of(ranking), CampaignLimits(**limits)
    if setup is not None or any(map(callable, commands)):
        others: dict[str, object] = {
            "environments": environments,
            "washout": washout,
            "control": control,
            "adjust": adjust,
            "metrics": tuple(metrics) != (PRIMARY_METRIC,),
            "ignore_failure": ignore_failure,
            "layouts": layouts,
            "aslr": aslr,
        }
        request = FunctionsRequest(numbers, names, asks_ranking, ledger, allow_concurrent, progress)
        compare_functions = load_part("compare_callables", *_OF_FUNCTIONS)
        record = compare_functions(commands, setup, request, others)
        return _result_of(record, show_env=show_env)
    options = CompareOptions(
        commands=_checked_commands([command for command in commands if not callable(command)]),
        names=tuple(names),
        environments=tuple(
            f"{which}:{key}={value}"
            for which, variables in (environments or {}).items()
            for key, value in variables.items()
        ),
        metrics=metrics,
        ignore_failure=ignore_failure,
        washout=washout,
        control=control,
        adjust=adjust,
        layouts=layouts,
        aslr=aslr,
        ranking=asks_ranking,
        limits=numbers,
    )
    plan, warnings = compare_plan(options)
    plan = replace(plan, command_line=_comparison_as_typed(options, plan.seed))
    with _measuring(ledger, allow_concurrent=allow_concurrent) as store:
        run_id = conduct.start(plan, store, progress or ProgressListener(), warnings=warnings)
        record = store.read_run(run_id)
    return _result_of(record, show_env=show_env)


@takes(Limits, CampaignLimits())
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

    Raise `UnusableInput` if there is no such study, factor or level, or nothing of it can run here.
    Raise `ConditionFailed` if a command failed. Raise `KeyboardInterrupt` if the user interrupted
    it; every finished trial is in the ledger.

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
        Run the study's quick form.
    factors
        The level to run of a factor, or a list of them, by its name; all others keep theirs.
    command
        Program to ask it of instead of the study's own workload.
    ranking, layouts, aslr, ledger, allow_concurrent, show_env, progress, limits
        As for ``compare``; ``None`` for the study's own, or else the usual default.
    """
    asks_ranking, numbers = _ranking_of(ranking), CampaignLimits(**limits)
    place = Path(ledger or default_ledger())
    chosen = [
        f"{name}={','.join(map(str, levels)) if isinstance(levels, list | tuple) else levels}"
        for name, levels in (factors or {}).items()
    ]
    options = StudyOptions(
        study=str(study), quick=quick, command=command, factors=chosen, layouts=layouts, aslr=aslr
    )
    prepared = prepare_study(options, place)
    with _measuring(place, allow_concurrent=allow_concurrent) as store:
        builds = prepared.built(place) if prepared.build_lines else {}
        plan, more = study_plan(
            prepared.study, prepared.grid(builds), numbers, ranking=asks_ranking
        )
        words = {
            "quick": quick,
            "factor": chosen,
            "command": command,
            **_common_options(layouts, aslr, asks_ranking, numbers, plan.seed),
        }
        plan = replace(plan, command_line=command_line_of("run", (str(study),), words))
        warnings = (*prepared.warnings, *more)
        with prepared.errors_at_settings(plan):
            run_id = conduct.start(plan, store, progress or ProgressListener(), warnings=warnings)
        record = store.read_run(run_id)
    return _result_of(record, show_env=show_env)


@contextmanager
def _measuring(ledger: Path | str | None, *, allow_concurrent: bool) -> Iterator[Ledger]:
    """Hold the measurement lock of this host, with the ledger open for writing."""
    with (
        conduct.measurement_lock(conduct.warn_of_wait, allow_concurrent=allow_concurrent),
        open_for_writing(Path(ledger or default_ledger()), durable=False) as store,
    ):
        try:
            yield store
        except conduct.Interrupted as interruption:
            raise KeyboardInterrupt(f"resume run {interruption.run_id}") from interruption


@takes(Limits, CampaignLimits())
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

    One piece alone is described.

    Raise `UnusableInput` if the code or the numbers make no campaign; nothing was measured. Raise
    `ConditionFailed` if a piece of code failed. Raise `KeyboardInterrupt` if the user interrupted
    it; every finished trial is in the ledger.

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
        Statements that run before, untimed, for each piece alone: once in each process, or
        before each run of a piece where a piece changes what it works on.
    globals
        Values of names that the code may use, such as ``globals()``; only those that it uses are
        sent to the fresh processes.
    """
    asks_ranking, numbers = _ranking_of(ranking), CampaignLimits(**limits)
    request = FunctionsRequest(numbers, names, asks_ranking, ledger, allow_concurrent, progress)
    record = load_part("compare_code", *_OF_FUNCTIONS)(codes, setup, globals or {}, request)
    return _result_of(record, show_env=show_env)


def _ranking_of(ranking: bool | OnOrOff | None) -> bool | None:
    """Return whether a ranking is requested; ``None`` for the default."""
    words = {None: None, True: True, False: False, "on": True, "off": False}
    if ranking not in words:
        raise UnusableInput(
            f"there is no ranking {ranking!r}", hint="give True or 'on', or False or 'off'"
        )
    return words[ranking]


def _comparison_as_typed(options: CompareOptions, seed: int) -> tuple[str, ...]:
    """Return the words of the command line that compares the same commands."""
    commands = [
        command if isinstance(command, str) else shlex.join(command) for command in options.commands
    ]
    metrics = tuple(options.metrics)
    words = {
        "command-name": options.names,
        "env": options.environments,
        "metrics": None if metrics == (PRIMARY_METRIC,) else ",".join(metrics),
        "ignore-failure": options.ignore_failure,
        "washout": options.washout,
        "control": options.control,
        "adjust": options.adjust,
        **_common_options(options.layouts, options.aslr, options.ranking, options.limits, seed),
    }
    return command_line_of("compare", commands, words)


def _common_options(
    layouts: int | None,
    aslr: Addresses | None,
    ranking: bool | None,
    limits: CampaignLimits,
    seed: int,
) -> dict[str, object]:
    """Return the options that a comparison and a study share, by their names."""
    on_or_off = None if ranking is None else "on" if ranking else "off"
    return {"layouts": layouts, "aslr": aslr, "ranking": on_or_off, **asdict(limits), "seed": seed}


def _checked_commands(
    commands: Sequence[str | Sequence[str]],
) -> tuple[str | tuple[str, ...], ...]:
    """Return commands as strings or tuples of words.

    Raise `UnusableInput` if a list of commands was given in the place of a command.
    """
    checked = tuple(command if isinstance(command, str) else tuple(command) for command in commands)
    for words in checked:
        if not isinstance(words, str) and _are_commands(words, alone=len(checked) == 1):
            raise UnusableInput(
                f"{[*words]} looks like several commands, but a list holds the words of one",
                hint="give each command alone: equipoise.compare(*commands); one command may "
                "be a string",
            )
    return checked


def _are_commands(words: tuple[object, ...], *, alone: bool) -> bool:
    """Return whether the words of one command look like commands.

    Where nothing else is compared, several words that all name programs are several commands.
    """
    texts = [word for word in words if isinstance(word, str)]
    if len(texts) < len(words):
        return True
    if texts and " " in texts[0].strip() and not Path(texts[0]).exists():
        return True
    return alone and len(texts) > 1 and all(map(shutil.which, texts))


def show(
    run: str = "last",
    *,
    ledger: Path | str | None = None,
    show_env: bool = False,
) -> Result:
    """Compute a campaign's result again from the ledger.

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
        Keep the values of all environment variables; by default those of known tuning variables.
    """
    with open_for_reading(Path(ledger or default_ledger())) as store:
        record = store.read_run(run)
        records = with_experiment(record, store)
    return _result_of(*records, show_env=show_env)


def _result_of(*records: RunRecord, show_env: bool) -> Result:
    """Return the result of a campaign, and of the one that tested its causes, if any."""
    document = result_of(*records_for_display(records, show_env=show_env))
    return Result(with_findings(document))
