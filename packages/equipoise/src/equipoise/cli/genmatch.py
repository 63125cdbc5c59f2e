"""``equipoise genmatch``: search for the covariate weights whose match has the best balance.

The search is genetic. A candidate is a vector with a weight for each covariate. The search matches
with these weights, and the fitness of the candidate is the balance of this match. A generation is
all candidates that are evaluated together. The names of measures and fields are those of R.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, command_line
from equipoise.cli.match import pairs_as_json, write_match_outputs, write_matched_rows
from equipoise.cli.options import ClusterOptions, tables
from equipoise.cli.options.tables import TableRequest

if TYPE_CHECKING:
    from equipoise_matching.matching.gen_match import GenMatchResult
    from equipoise_matching.tables.matching import TableMatch


BALANCE_MEASURES = (
    "pvals",
    "qqmean.mean",
    "qqmean.max",
    "qqmedian.median",
    "qqmedian.max",
    "qqmax.mean",
    "qqmax.max",
)
"""Measures of balance: ``pvals`` are p-values of tests. The others are about differences in the
quantile (QQ) plot of each covariate. In ``qqmean.max``, ``qqmean`` takes the mean difference of
each covariate, and ``max`` takes the largest of these means."""
_SEARCH_FIELDS = (
    "seed",
    "generations",
    "peak_generation",
    "population",
    "evaluations",
    "stopped_because",
)
"""Fields of `GenMatchResult` that the JSON has under the same names."""
_EFFECT_FIELDS = (
    "estimate",
    "interval",
    "se",
    "se_standard",
    "t",
    "p_value",
    "variance_neighbors",
    "n_without_neighbors",
    "n_weighted",
    "n_dropped",
)
"""Fields of `MatchResult` that the JSON has under the same names. ``se`` is the standard error of
Abadie and Imbens, ``se_standard`` assumes independent pairs."""


class GenMatchRequest(TableRequest, frozen=True, kw_only=True):
    """Request of `equipoise genmatch`."""

    variance_neighbors: int | None
    population: int
    generations: int
    hard_limit: bool
    """Whether the search stops after ``generations`` although the balance still improves."""
    wait: int
    """Number of generations without improvement after which the search stops."""
    fitness: str
    """Measure of balance that the search improves."""
    loss: str
    """Rule that orders the fitness values of two candidates; see the help of ``--loss``."""
    boot: int
    """Number of bootstrap samples of the Kolmogorov-Smirnov tests."""
    ks: bool
    """Whether to make Kolmogorov-Smirnov tests."""
    hosts: ClusterOptions


@click.command(
    "genmatch",
    cls=CommandRecorder,
    epilog="Example: equipoise genmatch people.csv --treatment treat --outcome re78 "
    "--covariates age,educ,re74 --balance 'age + educ + re74 + age:educ'",
)
@tables.table_options
@tables.outcome_option
@click.option(
    "--balance",
    metavar="TERMS",
    help="Terms to balance, as the right side of a formula; by default the covariates.",
)
@tables.pairing_options
@tables.variance_neighbors_option
@tables.count_option("--population", 100, "Number of candidates in a generation.", minimum=2)
@tables.count_option("--generations", 100, "Generations; more if the balance improves.", minimum=1)
@options.flag("--hard-limit", help="Stop after --generations in any case.")
@tables.count_option("--wait", 4, "Stop after this many generations without improvement.")
@click.option(
    "--fitness",
    type=click.Choice(BALANCE_MEASURES),
    default="pvals",
    show_default=True,
    help="Measure of balance that the search improves.",
)
@click.option(
    "--loss",
    type=click.Choice(["1", "2"]),
    default="1",
    show_default=True,
    help="1: compare candidates by all p-values, the smallest first; 2: by the smallest only.",
)
@tables.ks_options(0)
@options.cluster_option("Evaluate candidates on the workers")
@tables.matched_option
@tables.plot_options("Draw the balance before, along the search and after")
@options.pass_request(GenMatchRequest)
def command(request: GenMatchRequest) -> int:
    """Search for the covariate weights whose match has the best balance.

    FILE is CSV or Parquet. The result is the best match and its balance and, with --outcome, the
    effect that this match estimates.
    """
    from equipoise.cli.work_bars import search_bar
    from equipoise.report.builders.matching import table_document
    from equipoise_matching.tables.matching import search_table
    from equipoise_matching.tables.problem import read_table

    output = request.checked_output()
    table = read_table(request.file, request.columns)
    measure = "smallest p" if request.fitness == "pvals" else request.fitness
    bar = search_bar(measure, quiet=output.quiet, color=output.color)
    with _worker_pool(request.hosts) as executor, bar as progress:
        result = search_table(
            table,
            request.pairing,
            population=request.population,
            generations=request.generations,
            wait_generations=request.wait,
            hard_generation_limit=request.hard_limit,
            fitness=request.fitness,
            loss=int(request.loss),
            boot=request.boot,
            ks=request.ks,
            variance_neighbors=request.variance_neighbors,
            executor=executor,
            progress=progress,
        )
    write_matched_rows(result, request.matched)
    search = result.search
    assert search is not None, "`search_table` always searches"
    document = table_document(result, command_line(seed=search.seed))
    json_fields = _search_as_json(result, search)
    write_match_outputs(request, output, document, search.plot, json_fields, result.balance)
    return 0


def _worker_pool(hosts: ClusterOptions) -> AbstractContextManager[Any]:
    """Return a context that yields the workers of a cluster; ``None`` without a cluster."""
    access = hosts.access()
    if access is None:
        return nullcontext()
    from equipoise.cluster.connection import cluster_client

    return cluster_client(access)


def _search_as_json(result: TableMatch, search: GenMatchResult) -> dict[str, Any]:
    effect = None
    if result.estimate is not None:
        effect = {name: getattr(result.array_match, name) for name in _EFFECT_FIELDS}
    return {
        "schema": "equipoise.genmatch/1",
        "estimand": search.matches.estimand,
        "weights": dict(zip(search.names, search.weights.tolist(), strict=True)),
        "measure": search.measure,
        "fitness": search.fitness.tolist(),
        **{name: getattr(search, name) for name in _SEARCH_FIELDS},
        "history": [
            {
                "generation": generation.number,
                "fitness": generation.value.tolist(),
                # `parameters` is the best candidate of the generation: its weights.
                "weights": generation.parameters.tolist(),
                "evaluations": generation.evaluations,
            }
            for generation in search.history
        ],
        "effect": effect,
        **pairs_as_json(result),
    }
