"""The environment variables that change how a program runs, and no others.

What stands in an environment may be a secret, and a ledger is passed on: only the known tuning
variables (`equipoise.model.redaction`) are recorded with their values. Of those in
``WITHHELD`` it is recorded that they are set, because they matter and yet may hold what is
nobody's business: folders, tokens, hosts.
"""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.model.redaction import TUNING_VARIABLES

WITHHELD = frozenset(
    {
        "PATH",
        "PYTHONPATH",
        "TMPDIR",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "NODE_OPTIONS",
        "RUBYOPT",
        "PERL5OPT",
        "RUSTFLAGS",
    }
)


def relevant(environment: Mapping[str, str]) -> dict[str, str]:
    """The known tuning variables that are set, by name, with their values."""
    return {
        name: readable(environment[name]) for name in sorted(TUNING_VARIABLES & environment.keys())
    }


def withheld(environment: Mapping[str, str]) -> list[str]:
    """The variables that are set and matter, whose values are not recorded."""
    return sorted(WITHHELD & environment.keys())


def size_bytes(environment: Mapping[str, str]) -> int:
    """Bytes that the environment takes on the stack of every program that gets it.

    The size shifts the stack, and with it alignment (Mytkowicz et al., "Producing Wrong Data
    Without Doing Anything Obviously Wrong!", ASPLOS 2009, section 4).
    """
    return sum(
        len(name.encode("utf-8", "surrogateescape"))
        + len(value.encode("utf-8", "surrogateescape"))
        + 2
        for name, value in environment.items()
    )


def readable(text: str) -> str:
    """Text that any encoder takes: bytes that are no UTF-8 as ``\\xNN``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
