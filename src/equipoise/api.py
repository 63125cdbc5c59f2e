"""The Python interface: ``equipoise.compare`` and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import asdict

from equipoise.analysis.redaction.documents import without_hidden_values
from equipoise.campaign import conduct
from equipoise.campaign.plans import compare_plan
from equipoise.campaign.progress import ProgressListener
from equipoise.design.coin import Addresses
from equipoise.design.commands import CompareOptions
from equipoise.design.limits import CampaignLimits
from equipoise.figures.save import require_figures
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.ledger.opening import default_ledger
from equipoise.model.extras import Library, frame_of
from equipoise.model.interval import Interval
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.record import RunRecord
from equipoise.model.result import Comparison, ResultDocument, Verdict
from equipoise.why.campaigns import latest_experiment, result_of

if TYPE_CHECKING:
    import altair
    import pandas
    import polars


class Result(Struct, frozen=True):
    """Result of a campaign.

    ``verdict``, ``ratio`` and ``interval`` describe the first candidate; ``document`` holds
    everything, as the ``--json`` file does.
    """

    document: ResultDocument

    @property
    def comparison(self) -> Comparison:
        """The first candidate against the baseline, on the primary metric."""
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

        Raises
        ------
        UnusableInput
            The library is another, or not installed.
        """
        return frame_of([asdict(row) for row in self.document.trials], library)

    def plot(self) -> altair.LayerChart:
        """Return a chart of the distributions side by side, with every trial.

        Raises
        ------
        UnusableInput
            altair or vl-convert is not installed.
        """
        require_figures()
        from equipoise.figures.distributions import distributions

        return distributions(self.document)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        from equipoise.report.builders.result import CampaignReport, campaign_document
        from equipoise.report.renderers.notebook import to_html

        return to_html(campaign_document(CampaignReport(self.document)))

    def __str__(self) -> str:
        """Return one sentence for each comparison."""
        return "\n".join(comparison.summary for comparison in self.document.comparisons)


def compare(
    *commands: str | Sequence[str],
    names: Sequence[str] = (),
    environments: Mapping[int, Mapping[str, str]] | None = None,
    alpha: float = 0.05,
    min_effect: float = 1.0,
    blocks: int | None = None,
    min_blocks: int | None = None,
    min_seconds: float | None = None,
    budget: float = 60.0,
    patient: bool = False,
    precision: float | None = None,
    warmup: int = 1,
    washout: bool = False,
    control: bool = False,
    metrics: Sequence[str] = (PRIMARY_METRIC,),
    timeout: float = 600.0,
    ignore_failure: bool = False,
    layouts: int | None = None,
    aslr: Addresses | None = None,
    seed: int | None = None,
    ledger: Path | str | None = None,
    allow_concurrent: bool = False,
    show_env: bool = False,
    progress: ProgressListener | None = None,
) -> Result:
    """Compare commands; the first is the baseline.

    Parameters
    ----------
    commands
        Each a string, split as a POSIX shell splits words, or a sequence of words. No shell
        runs them.
    environments
        Variables that are set for one condition, by its position from 1.
    control
        Run the baseline a second time, to check the tool.
    metrics
        Metrics to compare; the first decides, the others are judged beside it.
    layouts
        Number of memory layouts; ``{layout}`` in a command is the number of each.
    aslr
        Whether the kernel draws addresses in a layout: ``drawn`` by a coin, ``on`` or ``off``.
    min_effect, precision
        Numbers in percent.
    blocks
        Maximum number of blocks; by default the budget alone is the limit.
    min_seconds
        Seconds of measured blocks before the first verdict, by default 1; 0 for none.
    patient
        Exceed the budget, by less than half, where a forecast says that a verdict is near.
    budget, timeout
        Numbers of seconds.
    ledger
        Ledger that keeps the campaign: by default ``$EQUIPOISE_LEDGER``, or
        ``.equipoise/ledger.db``.
    allow_concurrent
        Measure even if another campaign runs on this host, instead of waiting for its end.
    show_env
        Keep the values of all environment variables; by default those of known tuning variables.
    progress
        Listener that hears of every trial and block.

    Raises
    ------
    UnusableInput
        The commands or the numbers make no campaign; nothing was measured.
    ConditionFailed
        A command failed.
    KeyboardInterrupt
        The user interrupted it; every finished trial is in the ledger.
    """
    plan, warnings = compare_plan(
        CompareOptions(
            commands=tuple(
                command if isinstance(command, str) else tuple(command) for command in commands
            ),
            names=tuple(names),
            environments=tuple(
                f"{which}:{key}={value}"
                for which, variables in (environments or {}).items()
                for key, value in variables.items()
            ),
            metrics=metrics,
            washout=washout,
            ignore_failure=ignore_failure,
            control=control,
            layouts=layouts,
            aslr=aslr,
            limits=CampaignLimits(
                blocks=blocks,
                min_blocks=min_blocks,
                min_seconds=min_seconds,
                budget=budget,
                precision=precision,
                alpha=alpha,
                min_effect=min_effect,
                timeout=timeout,
                warmup=warmup,
                seed=seed,
                patient=patient,
            ),
        )
    )
    with (
        conduct.measurement_lock(lambda _: None, allow_concurrent=allow_concurrent),
        open_for_writing(Path(ledger or default_ledger()), durable=False) as store,
    ):
        try:
            run_id = conduct.start(plan, store, progress or ProgressListener(), warnings=warnings)
        except conduct.Interrupted as interruption:
            raise KeyboardInterrupt(f"resume run {interruption.run_id}") from interruption
        record = store.read_run(run_id)
    return _result_of(record, show_env=show_env)


def show(run: str = "last", *, ledger: Path | str | None = None, show_env: bool = False) -> Result:
    """Compute a campaign's result again from the ledger.

    Parameters
    ----------
    show_env
        Keep the values of all environment variables; by default those of known tuning variables.

    Raises
    ------
    UnusableInput
        There is no such ledger or no such run.
    """
    with open_for_reading(Path(ledger or default_ledger())) as store:
        record = store.read_run(run)
        experiment = latest_experiment(record, store)
    records = (record,) if experiment is None else (record, experiment)
    return _result_of(*records, show_env=show_env)


def _result_of(*records: RunRecord, show_env: bool) -> Result:
    """Return the result of a campaign, and of the one that tested its causes, if any."""
    return Result(result_of(*(records if show_env else without_hidden_values(records))))
