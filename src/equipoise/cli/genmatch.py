"""``equipoise genmatch``: a genetic search for the weights that balance best, from a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli import options
from equipoise.cli.command_line import Remembering
from equipoise.cli.matching_options import pairing, pairing_options, read_asked, table_options
from equipoise.model.errors import UnusableInput

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
_EFFECT = ("estimate", "se", "se_standard", "t", "p_value", "n_weighted", "n_dropped")


@click.command(
    "genmatch",
    cls=Remembering,
    epilog="Example: equipoise genmatch people.csv --treatment treat --outcome re78 "
    "--covariates age,educ,re74 --balance 'age + educ + re74 + age:educ'",
)
@table_options
@click.option("--outcome", metavar="COLUMN", help="What the treatment may have changed.")
@click.option(
    "--balance",
    metavar="TERMS",
    help="What to balance, as the right side of a formula; by default the covariates.",
)
@pairing_options
@click.option(
    "--population",
    type=click.IntRange(min=2),
    default=100,
    metavar="N",
    show_default=True,
    help="Candidates in a generation.",
)
@click.option(
    "--generations",
    type=click.IntRange(min=1),
    default=100,
    metavar="N",
    show_default=True,
    help="At most, unless the search still improves.",
)
@click.option("--hard-limit", is_flag=True, help="End after --generations in any case.")
@click.option(
    "--wait",
    type=click.IntRange(min=0),
    default=4,
    metavar="N",
    show_default=True,
    help="Generations without improvement before it ends.",
)
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
@click.option(
    "--boot",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    show_default=True,
    help="Bootstrap samples of the KS tests; 0 for none.",
)
@click.option("--no-ks", is_flag=True, help="Test no distribution, only means.")
@click.option(
    "--scheduler",
    metavar="tcp://HOST:PORT",
    help="Evaluate on the workers of this Dask scheduler. Whoever can reach it, or answers in its "
    "place, can run code as you: use TLS (tls://HOST:PORT) outside a network that you trust.",
)
@click.option(
    "--tls-ca",
    metavar="FILE.pem",
    type=click.Path(path_type=Path),
    help="Certificate of the authority that the scheduler's certificate is checked by.",
)
@click.option(
    "--tls-cert",
    metavar="FILE.pem",
    type=click.Path(path_type=Path),
    help="Your own certificate, by which the scheduler checks you.",
)
@click.option(
    "--tls-key",
    metavar="FILE.pem",
    type=click.Path(path_type=Path),
    help="The private key of --tls-cert.",
)
@options.report_option
@options.figures_option
@click.option(
    "--plot",
    "plot_file",
    metavar="FILE.html",
    type=click.Path(path_type=Path),
    help="Draw the balance before, along the search and after; .svg and .png too.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write the result; '-' for stdout.")
def command(**given: Any) -> int:
    """Search for the weights of the covariates whose matches balance best.

    FILE is CSV or Parquet. Who is matched, and how balanced, stands below; with --outcome the
    effect by the best weights too.
    """
    from equipoise.cli.matching_conclusions import conclude_search
    from equipoise.cli.matching_output import Found, check_outputs, put_out
    from equipoise.matching.gen_match import gen_match
    from equipoise.matching.match import match

    check_outputs(given)
    asked = read_asked(given)
    treated = asked.covariates.treated.astype(float)
    how = {
        **pairing(given, asked.covariates.names),
        "common_support": given["common_support"],
        "weights": asked.weights,
    }
    matrix = _frame(asked.covariates)
    with _executor(given) as executor, _bar(given) as told:
        found = gen_match(
            treated,
            matrix,
            _frame(asked.balance),
            population=given["population"],
            generations=given["generations"],
            wait_generations=given["wait"],
            hard_generation_limit=given["hard_limit"],
            fitness=given["fitness"],
            loss=int(given["loss"]),
            boot=given["boot"],
            ks=not given["no_ks"],
            executor=executor,
            progress=told,
            **how,
        )
    effect = None
    if asked.outcome is not None:
        effect = match(
            asked.outcome,
            treated,
            matrix,
            metric=found.to_metric(),
            **{**how, "seed": found.seed},
        )
    balance = found.balance(boot=given["boot"], ks=not given["no_ks"])
    put_out(
        Found(
            "equipoise.genmatch/1",
            _document(found, effect),
            balance,
            found.plot,
            lambda: conclude_search(given, asked, found, effect, balance),
        ),
        given,
    )
    return 0


def _bar(given: dict[str, Any]) -> AbstractContextManager[Any]:
    from equipoise.cli.search_bar import search_bar

    criterion = "smallest p" if given["fitness"] == "pvals" else given["fitness"]
    return search_bar(criterion, quiet=given["quiet"], color=not given["no_color"])


@contextmanager
def _executor(given: dict[str, Any]) -> Iterator[Any]:
    files = {name: given[name] for name in ("tls_ca", "tls_cert", "tls_key")}
    missing = [f"--{name.replace('_', '-')}" for name, file in files.items() if file is None]
    if given["scheduler"] is None:
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
    with connect(given["scheduler"], tls=tls) as client:
        yield client


def _frame(covariates: Any) -> Any:
    """A frame, so that errors and figures name the columns."""
    try:
        import pandas
    except ImportError as error:
        raise UnusableInput(
            "genmatch needs pandas, which is not installed",
            hint="pip install 'equipoise[matching]'",
        ) from error
    return pandas.DataFrame(covariates.matrix, columns=list(covariates.names))


def _document(found: GenMatchResult, effect: MatchResult | None) -> dict[str, Any]:
    matches = found.matches
    return {
        "estimand": matches.estimand,
        "weights": dict(zip(found.names, found.weights.tolist(), strict=True)),
        "measure": found.measure,
        "fitness": found.fitness.tolist(),
        "seed": found.seed,
        "generations": found.generations,
        "peak_generation": found.peak_generation,
        "population": found.population,
        "evaluations": found.evaluations,
        "stopped_because": found.stopped_because,
        "history": [
            {
                "generation": one.number,
                "fitness": one.value.tolist(),
                "weights": one.par.tolist(),
                "evaluations": one.evaluations,
            }
            for one in found.history
        ],
        "effect": None
        if effect is None
        else {name: _number(getattr(effect, name)) for name in _EFFECT},
        "pairs": [
            {"treated": treated, "control": control, "weight": weight}
            for treated, control, weight in zip(
                matches.treated_index.tolist(),
                matches.control_index.tolist(),
                matches.weights.tolist(),
                strict=True,
            )
        ],
        "dropped": [int(row) for row in matches.dropped_index],
    }


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
