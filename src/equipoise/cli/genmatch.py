"""``equipoise genmatch``: a genetic search for the weights that balance best, from a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.command_line import Remembering
from equipoise.cli.matching import (
    count_option,
    difference_before,
    ks_options,
    match_question,
    matching_output,
    numbers_of,
    outcome_option,
    output_options,
    pairing,
    pairing_options,
    pairs_document,
    read_match_table,
    table_options,
    variance_neighbors_option,
    write_matching,
)
from equipoise.cli.options import file_option
from equipoise.model.errors import UnusableInput
from equipoise.model.extras import require

if TYPE_CHECKING:
    from equipoise.matching.gen_match import GenMatchResult
    from equipoise.matching.match import MatchResult


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
    "se",
    "se_standard",
    "t",
    "p_value",
    "variance_neighbors",
    "n_without_neighbors",
    "n_weighted",
    "n_dropped",
)


@click.command(
    "genmatch",
    cls=Remembering,
    epilog="Example: equipoise genmatch people.csv --treatment treat --outcome re78 "
    "--covariates age,educ,re74 --balance 'age + educ + re74 + age:educ'",
)
@table_options
@outcome_option
@click.option(
    "--balance",
    metavar="TERMS",
    help="What to balance, as the right side of a formula; by default the covariates.",
)
@pairing_options
@variance_neighbors_option
@count_option("--population", 100, "Candidates in a generation.", low=2)
@count_option("--generations", 100, "At most, unless the search still improves.", low=1)
@click.option("--hard-limit", is_flag=True, help="End after --generations in any case.")
@count_option("--wait", 4, "Generations without improvement before it ends.")
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
@ks_options(0)
@click.option(
    "--scheduler",
    metavar="tcp://HOST:PORT",
    help="Evaluate on the workers of this Dask scheduler. Whoever can reach it, or answers in its "
    "place, can run code as you: use TLS (tls://HOST:PORT) outside a network that you trust.",
)
@file_option(
    "--tls-ca",
    metavar="FILE.pem",
    help="Certificate of the authority that the scheduler's certificate is checked by.",
)
@file_option(
    "--tls-cert",
    metavar="FILE.pem",
    help="Your own certificate, by which the scheduler checks you.",
)
@file_option("--tls-key", metavar="FILE.pem", help="The private key of --tls-cert.")
@output_options("Draw the balance before, along the search and after")
def command(**arguments: Any) -> int:
    """Search for the weights of the covariates whose matches balance best.

    FILE is CSV or Parquet. Who is matched, and how balanced, stands below; with --outcome the
    effect by the best weights too.
    """
    from equipoise.matching.gen_match import gen_match
    from equipoise.matching.match import match
    from equipoise.report.builders.matching import search_document

    output = matching_output(arguments)
    table = read_match_table(arguments)
    treated = table.covariates.treated.astype(float)
    matrix = _frame(table.covariates)
    options = {
        **pairing(arguments, table.covariates.names),
        "common_support": arguments["common_support"],
        "weights": table.weights,
    }
    criterion = "smallest p" if arguments["fitness"] == "pvals" else arguments["fitness"]
    from equipoise.cli.progress import search_bar

    bar = search_bar(criterion, quiet=output.quiet, color=output.color)
    with _executor(arguments) as executor, bar as progress:
        search = gen_match(
            treated,
            matrix,
            _frame(table.balance),
            population=arguments["population"],
            generations=arguments["generations"],
            wait_generations=arguments["wait"],
            hard_generation_limit=arguments["hard_limit"],
            fitness=arguments["fitness"],
            loss=int(arguments["loss"]),
            boot=arguments["boot"],
            ks=not arguments["no_ks"],
            executor=executor,
            progress=progress,
            **options,
        )
    effect = None
    if table.outcome is not None:
        options["seed"] = search.seed
        effect = match(
            table.outcome,
            treated,
            matrix,
            metric=search.to_metric(),
            variance_neighbors=arguments["variance_neighbors"],
            **options,
        )
    balance = search.balance(boot=arguments["boot"], ks=not arguments["no_ks"])
    question = match_question(arguments, table, search.seed)
    report = search_document(search, effect, balance, difference_before(table), question)
    write_matching(arguments, output, report, search.plot, _document(search, effect), balance)
    return 0


@contextmanager
def _executor(arguments: dict[str, Any]) -> Iterator[Any]:
    files = {name: arguments[name] for name in ("tls_ca", "tls_cert", "tls_key")}
    missing = [f"--{name.replace('_', '-')}" for name, file in files.items() if file is None]
    if arguments["scheduler"] is None:
        if len(missing) < len(files):
            raise UnusableInput("TLS files without --scheduler", hint="name the scheduler")
        yield None
        return
    from equipoise.genoud.cluster import TlsFiles, connect

    if missing and len(missing) < len(files):
        raise UnusableInput(
            f"{' and '.join(missing)} missing: TLS needs three files",
            hint="give --tls-ca, --tls-cert and --tls-key together, or none of them",
        )
    tls = None if missing else TlsFiles(files["tls_ca"], files["tls_cert"], files["tls_key"])
    with connect(arguments["scheduler"], tls=tls) as client:
        yield client


def _frame(covariates: Any) -> Any:
    """Return a frame, so that errors and figures name the columns."""
    pandas = require("pandas", "searches")
    return pandas.DataFrame(covariates.matrix, columns=list(covariates.names))


def _document(search: GenMatchResult, effect: MatchResult | None) -> dict[str, Any]:
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
        "effect": None if effect is None else numbers_of(effect, _EFFECT),
        **pairs_document(search.matches),
    }
