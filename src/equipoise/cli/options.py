"""The options that several commands share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cluster.address import FORMS, read_address
from equipoise.design.limits import RANGES, NumberRange
from equipoise.design.limits import fields_of as fields_of
from equipoise.design.limits import limits_of as limits_of
from equipoise.files.state import HOST_VARIABLE
from equipoise.ledger.opening import DEFAULT_LEDGER, LEDGER_VARIABLE, default_ledger
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import MOST_RANKED, Judgement

if TYPE_CHECKING:
    from equipoise.cluster.connection import ClusterAccess

Option = Callable[[Any], Any]
"""Decorator that adds an option, or several, to a command."""


def options_of(*options: Option) -> Option:
    """Return a decorator that adds options in the order in which the help lists them."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def option_named(name: str) -> str:
    """Return the option that gives an argument of this name."""
    return f"--{name.replace('_', '-')}"


class _Number(click.FloatRange):
    """A number in one of the `RANGES`, with the error of the Python interface."""

    name = "number"

    def __init__(self, number_range: NumberRange) -> None:
        high = None if number_range.high == math.inf else number_range.high
        super().__init__(min=number_range.low, max=high, min_open=number_range.above_low)
        self.number_range = number_range

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value as a number of the range."""
        option = "" if param is None else max(param.opts, key=len)
        return self.number_range.read(value, f"{option} {value}".strip())


def number_option(*names: str, number: str | None = None, **settings: Any) -> Option:
    """Return an option that takes one of the `RANGES`: the one named like the option, or another.

    Parameters
    ----------
    number
        Name of the range; by default the long name of the option.
    settings
        Settings of ``click.option``.
    """
    name = number or names[-1].removeprefix("--").replace("-", "_")
    settings = {"show_default": True, **settings}
    return click.option(*names, type=_Number(RANGES[name]), **settings)


def flag(*names: str, help: str, **settings: Any) -> Option:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help, **settings)


def file_option(*names: str, metavar: str = "FILE", **settings: Any) -> Option:
    """Return an option that takes the path of a file or a folder."""
    return click.option(*names, metavar=metavar, type=click.Path(path_type=Path), **settings)


def names_option(*names: str, metavar: str = "A,B", **settings: Any) -> Option:
    """Return an option that takes names, separated by commas."""
    return click.option(*names, metavar=metavar, callback=names_in, **settings)


def names_in(
    context: click.Context, option: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Return names that a user separated by commas; ``None`` without a value."""
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    if not all(names):
        raise click.BadParameter(f"'{value}' has an empty name.", context, option)
    return names


def missing_option(**settings: Any) -> Option:
    """Return ``--missing``; ``settings`` hold its default, or how the help shows it."""
    return click.option(
        "--missing",
        type=click.Choice(["refuse", "drop", "indicator"]),
        help="What to do where a value is missing: refuse the table, leave out the row, or keep it "
        "with a covariate that says so.",
        **settings,
    )


ledger_option = file_option(
    "--ledger",
    default=default_ledger,
    show_default=f"{DEFAULT_LEDGER}, or ${LEDGER_VARIABLE}",
    help="Where campaigns are kept.",
)
color_option = flag(
    "--no-color",
    "color",
    flag_value=False,
    default=True,
    callback=lambda _context, _option, value: value and not os.environ.get("NO_COLOR"),
    help="Print without colour; so does NO_COLOR in the environment.",
)


def json_option(what: str = "the result document") -> Option:
    """Return ``--json``, which writes what a command has to tell."""
    return click.option(
        "--json",
        "json_file",
        metavar="FILE",
        help=f"Write {what}; '-' for stdout, and then nothing else is there.",
    )


output_options = options_of(
    json_option(),
    flag("--quiet", help="Print no progress and no screen."),
    color_option,
)
verbose_option = flag(
    "--verbose", help="Print every warning, how sure each answer is, and the shape of the times."
)
report_option = file_option(
    "--report",
    "report_file",
    help="Write a report: .html is one page that can be sent; .md, .tex or .csv.",
)
show_env_option = flag(
    "--show-env",
    help="Show the values of all environment variables: they are hidden but for tuning variables.",
)
figures_option = file_option(
    "--figures", metavar="FOLDER", help="Write each figure there, as .html, .svg and .png."
)
durable_option = flag("--durable", help="Let each trial survive a loss of power, too.")
timeout_option = number_option(
    "--timeout",
    default=600.0,
    metavar="SECONDS",
    help="End a trial after so long; it counts as slowest.",
)
seed_option = number_option(
    "--seed",
    metavar="N",
    help="The seed of the coin; drawn and recorded if it is not given.",
)
against_option = options_of(
    file_option(
        "--against",
        help="Hold every row against this --json of another host, or of this one earlier.",
    ),
    names_option(
        "--allow",
        "allowed",
        help="What alone may differ between the two environments: anything else is refused.",
    ),
)
no_test_option = flag(
    "--no-test",
    "test",
    flag_value=False,
    default=True,
    help="Of why, gather evidence only: change nothing to test it.",
)
why_option = options_of(
    flag("--why", help="Observe the largest gap that is called: where the extra time is, and why."),
    no_test_option,
)
concurrent_option = flag(
    "--allow-concurrent",
    envvar="EQUIPOISE_ALLOW_CONCURRENT",
    help="Measure though another campaign runs on this host.",
)
cluster_access_options = options_of(
    flag(
        "--insecure",
        help="Speak in the clear with a cluster outside of a private network: whoever is on the "
        "way can then run code as you.",
    ),
    file_option(
        "--tls-ca",
        metavar="FILE.pem",
        help="Certificate of the authority that the scheduler's certificate is checked by.",
    ),
    file_option(
        "--tls-cert",
        metavar="FILE.pem",
        help="Your own certificate, by which the scheduler checks you.",
    ),
    file_option("--tls-key", metavar="FILE.pem", help="The private key of --tls-cert."),
)


def cluster_option(purpose: str) -> Option:
    """Return ``--cluster`` and what says how it may be spoken to.

    Parameters
    ----------
    purpose
        What the cluster is for, as the help says it: "Measure on every host".
    """
    return options_of(
        click.option(
            "--cluster",
            metavar="ADDRESS",
            help=f"{purpose} of a Dask cluster: {FORMS}. Whoever answers there can run code "
            "as you.",
        ),
        cluster_access_options,
    )


host_timeout_option = number_option(
    "--host-timeout",
    metavar="SECONDS",
    show_default="300",
    help="With --cluster: end without a host that gave no answer for so long; `equipoise resume` "
    "asks it again.",
)
fleet_options = options_of(
    cluster_option("Measure on every host"),
    flag("--ship", help="With --cluster: send the programs and inputs to hosts that have others."),
    host_timeout_option,
)


def access_of(arguments: Mapping[str, Any]) -> ClusterAccess | None:
    """Return the cluster that the options name; ``None`` without ``--cluster``.

    Raises
    ------
    UnusableInput
        The address is none, is unprotected, or options do not fit together.
    """
    files = {option_named(name): arguments[name] for name in ("tls_ca", "tls_cert", "tls_key")}
    missing = [name for name, file in files.items() if file is None]
    if arguments["cluster"] is None:
        if len(missing) < len(files):
            raise UnusableInput("TLS files without --cluster", hint="name the cluster")
        if arguments["insecure"]:
            raise UnusableInput("--insecure without --cluster", hint="name the cluster")
        return None
    if missing and len(missing) < len(files):
        raise UnusableInput(
            f"{' and '.join(missing)} missing: TLS needs three files",
            hint="give --tls-ca, --tls-cert and --tls-key together, or none of them",
        )
    from equipoise.cluster.connection import ClusterAccess, TlsFiles

    tls = None if missing else TlsFiles(*files.values())
    return ClusterAccess(read_address(arguments["cluster"]), tls, arguments["insecure"])


EXPORT_FORMS = ("json", "csv", "markdown", "asciidoc", "orgmode")
"""Hyperfine's formats of ``--export-…``."""
_ONE_HOST_OPTIONS = {
    "why": "what explains a gap is observed on one host",
    "what_varies": "the sources of chance are those of one host",
    "adjust": "what holds over hosts rests on unadjusted blocks",
    "layouts": "what holds over hosts rests on blocks, not on layouts",
    "against": "a reference result is compared with one host",
    **dict.fromkeys(
        [f"export_{form}" for form in EXPORT_FORMS],
        "hyperfine's formats hold the times of one host",
    ),
}
"""Options that do not go with ``--cluster``, each with the reason."""
_CLUSTER_OPTIONS = ("ship", "host_timeout")
"""Options that need ``--cluster``."""


def fleet_access(arguments: Mapping[str, Any]) -> ClusterAccess | None:
    """Return the cluster to measure on; ``None`` for this host alone.

    Raises
    ------
    UnusableInput
        The address is none or unprotected, or an option does not go with ``--cluster``.
    """
    access = access_of(arguments)
    if access is None:
        for name in _CLUSTER_OPTIONS:
            if arguments.get(name):
                raise UnusableInput(
                    f"{option_named(name)} without --cluster",
                    hint="leave it out, or name the cluster",
                )
        return None
    for name, reason in _ONE_HOST_OPTIONS.items():
        if arguments.get(name):
            raise UnusableInput(
                f"{option_named(name)} does not go with --cluster: {reason}",
                hint="leave it out, or measure on one host",
            )
    if "inherit" in (arguments.get("outputs") or ()):
        raise UnusableInput(
            "--output inherit does not go with --cluster: the terminal is on another host",
            hint="leave it out, or name a file, which each host writes",
        )
    return access


host_option = click.option(
    "--host",
    metavar="NAME",
    show_default=f"${HOST_VARIABLE}, or the name of this machine",
    help="Name of this host in the ledger and in tables of several hosts.",
)
host_options = options_of(concurrent_option, host_option)
hyperfine_exports = options_of(
    *(
        file_option(
            f"--export-{form}", help=f"Write the times as hyperfine's --export-{form} does."
        )
        for form in EXPORT_FORMS
    )
)
campaign_files = options_of(
    ledger_option, durable_option, hyperfine_exports, report_option, show_env_option
)
"""The options on what a campaign leaves in files."""
ranking_option = click.option(
    "--ranking",
    type=click.Choice(["on", "off"]),
    callback=lambda _context, _option, value: None if value is None else value == "on",
    show_default=f"on, without --layouts and for at most {MOST_RANKED} conditions",
    help="Ask which condition is the fastest, or ask about the baseline alone.",
)
layout_options = options_of(
    number_option(
        "--layouts",
        metavar="K",
        help="Compare over K memory layouts; {layout} in a command is the number of each.",
    ),
    click.option(
        "--aslr",
        metavar="[drawn|on|off]",
        help="Whether the kernel draws addresses in a layout; 'drawn' (the usual): by a coin.",
    ),
)


def warmup_option(
    explanation: str = "Trials of each condition before the first block, never analysed.",
    **settings: Any,
) -> Option:
    """Return ``--warmup``; ``settings`` hold its default, or how the help shows it."""
    return number_option("-w", "--warmup", metavar="N", help=explanation, **settings)


patient_option = flag(
    "--patient",
    default=None,
    help="Exceed the budget, by less than half, where a forecast says that a verdict is near.",
)


def stopping_options(
    blocks: str = "no limit", min_blocks: str = "5", min_seconds: str = "1", budget: str = "60"
) -> Option:
    """Return the options that say when a campaign ends; unset is ``None``.

    Parameters
    ----------
    blocks, min_blocks, min_seconds, budget
        Defaults, as the help shows them.
    """
    return options_of(
        number_option("--blocks", metavar="N", show_default=blocks, help="At most so many blocks."),
        number_option(
            "--min-blocks",
            metavar="N",
            show_default=min_blocks,
            help="Look for a verdict from this block on; given, it beats the budget.",
        ),
        number_option(
            "--min-seconds",
            metavar="SECONDS",
            show_default=min_seconds,
            help="Look for a verdict once the blocks took so long; 0 for at once.",
        ),
        number_option(
            "--budget",
            metavar="SECONDS",
            show_default=budget,
            help="Stop after about so many seconds.",
        ),
        number_option(
            "--precision",
            metavar="PERCENT",
            help="Go on until the interval is at most this wide.",
        ),
        number_option(
            "--tail",
            metavar="PERCENT",
            help="Go on until slow runs that come in this percentage of runs would have shown.",
        ),
    )


def judging_options(
    min_effect: float = Judgement().min_effect, *, of_study: bool = False
) -> Option:
    """Return ``--min-effect``, ``--alpha`` and ``--seed``.

    Parameters
    ----------
    of_study
        Whether a study may have numbers of its own, which come before the defaults.
    """
    alpha, before = Judgement().alpha, "the study's, or " if of_study else ""
    return options_of(
        number_option(
            "--min-effect",
            default=None if of_study else min_effect,
            show_default=f"{before}{min_effect:g}",
            metavar="PERCENT",
            help="The smallest effect that matters; 0 for none.",
        ),
        number_option(
            "--alpha",
            default=None if of_study else alpha,
            show_default=f"{before}{alpha:g}",
            help="The largest chance of a wrong verdict.",
        ),
        seed_option,
    )
