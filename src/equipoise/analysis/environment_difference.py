"""What differs between the environments of two results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.model.against import EnvironmentDifference
from equipoise.model.result import ResultDocument

UNTOLD = frozenset(
    {
        # Another session of the same host: nothing in them changes what is measured.
        "boot_id",
        "certificate",
        "mapped",
        "environment_bytes",
        "time_zone",
        "unknown",
        "variables_set_but_withheld",
    }
)
"""What differs between any two sessions, or is told elsewhere."""


ENVIRONMENT = "environment"
"""What stands for all that a file of another tool does not say of where it ran."""


def document_differences(
    there: ResultDocument, here: ResultDocument
) -> tuple[EnvironmentDifference, ...]:
    """What differs between the environments of two results.

    Of an imported run only what its files say is known. What is known of one side only is then no
    difference by itself: the whole `environment` is one that is unknown, even where both files say
    the same.
    """
    differences = environment_differences(there.environment, here.environment)
    recorded = (there.imported is None, here.imported is None)
    return differences if all(recorded) else _partly_known(differences, recorded)


def differences_to_host(
    there: ResultDocument, host: Mapping[str, Any]
) -> tuple[EnvironmentDifference, ...]:
    """What will differ between a result and a campaign that is yet to run.

    Parameters
    ----------
    host
        The environment that it will run in.
    """
    differences = environment_differences(there.environment, host)
    return differences if there.imported is None else _partly_known(differences, (False, True))


def _partly_known(
    differences: Sequence[EnvironmentDifference], recorded: tuple[bool, bool]
) -> tuple[EnvironmentDifference, ...]:
    return (
        EnvironmentDifference(ENVIRONMENT, *("recorded" if one else None for one in recorded)),
        *(
            one
            for one in differences
            if None not in (one.there, one.here) and one.name != "imported_from"
        ),
    )


def environment_differences(
    there: Mapping[str, Any], here: Mapping[str, Any]
) -> tuple[EnvironmentDifference, ...]:
    """What is known of both and differs, or is known of one only; in the order of the later one."""
    told = [dict(_told(there)), dict(_told(here))]
    names = dict.fromkeys((*told[1], *told[0]))
    return tuple(
        EnvironmentDifference(name, told[0].get(name), told[1].get(name))
        for name in names
        if told[0].get(name) != told[1].get(name)
    )


def _told(environment: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names and plain values; what is in a table has the name of the table before its own."""
    for name, value in environment.items():
        if not prefix and name in UNTOLD:
            continue
        if isinstance(value, Mapping):
            yield from _told(value, f"{prefix}{name}.")
        else:
            # JSON knows no tuples.
            yield f"{prefix}{name}", list(value) if isinstance(value, tuple) else value
