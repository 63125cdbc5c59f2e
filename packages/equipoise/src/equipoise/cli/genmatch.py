"""``equipoise genmatch``: a genetic search for the weights that balance best, from a table."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.command_line import CommandRecorder, command_line
from equipoise.cli.match import pairs_document, write, write_rows
from equipoise.cli.options import ClusterOptions, tables
from equipoise.cli.options.tables import TableRequest

if TYPE_CHECKING:
    from equipoise_matching.matching.gen_match import GenMatchResult
    from equipoise_matching.tables.matching import TableMatch


_FITNESS = (
    "pvals",
    "qqmean.mean",
    "qqmean.max",
    "qqmedian.median",
    "qqmedian.max",
    "qqmax.mean",
    "qqmax.max",
)
_COURSE = (
    "seed",
    "generations",
    "peak_generation",
    "population",
    "evaluations",
    "stopped_because",
)
_EFFECT = (
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


class GenMatchRequest(TableRequest, frozen=True, kw_only=True):
    """Request of `equipoise genmatch`."""

    variance_neighbors: int | None
    population: int
    generations: int
    hard_limit: bool
    wait: int
    fitness: str
    loss: str
    boot: int
    ks: bool
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
    help="What to balance, as the right side of a formula; by default the covariates.",
)
@tables.pairing_options
@tables.variance_neighbors_option
@tables.count_option("--population", 100, "Candidates in a generation.", low=2)
@tables.count_option("--generations", 100, "At most, unless the search still improves.", low=1)
@options.flag("--hard-limit", help="End after --generations in any case.")
@tables.count_option("--wait", 4, "Generations without improvement before it ends.")
@click.option(
    "--fitness",
    type=click.Choice(_FITNESS),
    default="pvals",
    show_default=True,
    help="What balance is judged by.",
)
@click.option(
    "--loss",
    type=click.Choice(["1", "2"]),
    default="1",
    show_default=True,
    help="All p-values, the smallest first; or the smallest only.",
)
@tables.ks_options(0)
@options.cluster_option("Evaluate on the workers")
@tables.matched_option
@tables.plot_options("Draw the balance before, along the search and after")
@options.pass_request(GenMatchRequest)
def command(request: GenMatchRequest) -> int:
    """Search for the weights of the covariates whose matches balance best.

    FILE is CSV or Parquet. The matches and their balance are printed; with --outcome the
    effect by the best weights too.
    """
    from equipoise.cli.work_bars import search_bar
    from equipoise.report.builders.matching import table_document
    from equipoise_matching.tables.matching import search_table
    from equipoise_matching.tables.problem import read_table

    output = request.checked_output()
    table = read_table(request.file, request.columns)
    criterion = "smallest p" if request.fitness == "pvals" else request.fitness
    bar = search_bar(criterion, quiet=output.quiet, color=output.color)
    with _executor(request.hosts) as executor, bar as progress:
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
    write_rows(result, request.matched)
    search = result.search
    assert search is not None
    report = table_document(result, command_line(seed=search.seed))
    document = _document(result, search)
    write(request, output, report, search.plot, document, result.balance)
    return 0


def _executor(hosts: ClusterOptions) -> AbstractContextManager[Any]:
    access = hosts.access()
    if access is None:
        return nullcontext()
    from equipoise.cluster.connection import cluster_client

    return cluster_client(access)


def _document(result: TableMatch, search: GenMatchResult) -> dict[str, Any]:
    effect = None
    if result.estimate is not None:
        effect = {name: getattr(result.array_match, name) for name in _EFFECT}
    return {
        "schema": "equipoise.genmatch/1",
        "estimand": search.matches.estimand,
        "weights": dict(zip(search.names, search.weights.tolist(), strict=True)),
        "measure": search.measure,
        "fitness": search.fitness.tolist(),
        **{name: getattr(search, name) for name in _COURSE},
        "history": [
            {
                "generation": generation.number,
                "fitness": generation.value.tolist(),
                "weights": generation.par.tolist(),
                "evaluations": generation.evaluations,
            }
            for generation in search.history
        ],
        "effect": effect,
        **pairs_document(result),
    }
